"""Questions asked of many seeds: what each part of a model is worth, and how sure that is."""
