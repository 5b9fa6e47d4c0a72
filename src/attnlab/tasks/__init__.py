"""Kinds of experiments, a folder each: all that differs between them."""
