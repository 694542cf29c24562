"""Other libraries' weights, in both directions: every tensor accounted for, nothing guessed."""
