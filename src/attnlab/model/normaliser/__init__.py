"""From scores to weights that sum to 1: one file a normaliser."""
