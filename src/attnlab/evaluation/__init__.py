"""Decoded text to metrics, alignments to error rates, attention statistics, and tests of differences."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the name of the current step, how many items are done, and how many there are."""
