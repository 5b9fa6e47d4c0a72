"""Corpus metrics, alignment error rates, attention statistics, explanations, significance tests.

What a task measures of its own is in tasks/.
"""
