"""Decoded text to metrics, alignments to their error rate, and what the attention weights do on average."""
