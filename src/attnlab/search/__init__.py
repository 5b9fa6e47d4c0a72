"""From a model to hypotheses: one file a search."""
