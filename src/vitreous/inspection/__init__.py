"""Looking at a model from outside: what it attends to, and what its maps are worth."""
