"""Trained models in use: load a folder, translate or classify, score, intervene."""
