"""Losses on attention weights, beside the negative log-likelihood, a file each."""
