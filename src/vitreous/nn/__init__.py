"""Patches, positions, attention, encoder: no modality, no config."""
