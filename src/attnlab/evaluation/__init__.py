"""Decoded text to metrics, alignments to error rates, attention statistics, and tests of
differences.
"""
