"""Attention(Q, K, V) and its scores: one file a score."""
