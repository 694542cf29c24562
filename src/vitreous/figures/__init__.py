"""The palette, axes and self-contained pages of everything that the project draws."""
