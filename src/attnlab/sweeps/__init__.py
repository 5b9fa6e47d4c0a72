"""Sweeps: many jobs of one multirun, led by its first process. Knows neither Hydra nor MLflow."""
