"""Use of trained models: load a folder, translate, classify, score, intervene."""
