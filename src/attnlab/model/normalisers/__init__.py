"""Normalisers: from scores to attention weights. The base class in normaliser.py, a file a kind."""
