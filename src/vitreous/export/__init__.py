"""Models in formats of other programs, read back there and compared before anything is said."""
