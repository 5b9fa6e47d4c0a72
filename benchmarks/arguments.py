"""Argument types of the benchmarks."""

from __future__ import annotations

from argparse import ArgumentTypeError


def at_least_one(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"must be a whole number of at least 1, got {text}")
    return int(text)
