"""Whole models: here a config becomes modules."""
