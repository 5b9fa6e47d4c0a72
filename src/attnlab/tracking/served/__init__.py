"""Code that MLflow stores with a model and runs to load it."""
