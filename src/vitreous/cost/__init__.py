"""What a model costs, from its config alone; nothing here needs torch."""
