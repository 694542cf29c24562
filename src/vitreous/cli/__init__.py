"""The command line: one file per verb, each a thin shell around one function."""
