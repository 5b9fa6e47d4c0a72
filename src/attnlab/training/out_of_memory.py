"""Errors for memory that ran out, which say what to make smaller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from attnlab.errors import ExperimentError

_WANTED = re.compile(r"tried to allocate ([\d.]+ ?\w*)", re.IGNORECASE)


def ran_out_of_memory(error: BaseException) -> bool:
    """Of the device, or of this process where the system says so; a process that the system kills can say nothing."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


@contextmanager
def memory_told(remedy: str) -> Iterator[None]:
    """Raise ExperimentError in place of an error of memory: `out of memory (...); <remedy>`."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        wanted = _WANTED.search(str(error))
        size = f" (a tensor of {wanted[1]} was asked for)" if wanted else ""
        raise ExperimentError(f"out of memory{size}; {remedy}") from error
