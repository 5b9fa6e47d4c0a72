"""Searches: from a model to hypotheses."""
