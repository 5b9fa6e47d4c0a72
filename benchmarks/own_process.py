"""Run a function in its own process, to measure its time and memory alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

import psutil

Given = ParamSpec("Given")
Found = TypeVar("Found")


def in_own_process(
    function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs
) -> Found:
    """What the function returns; it must be a module's, as must the kinds of what it is given."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def private_megabytes() -> float:
    """The memory of this process, without the pages of mapped files.

    The system takes those back when needed.
    """
    memory = psutil.Process().memory_info()
    # Only Linux distinguishes the two
    return float(memory.rss - getattr(memory, "shared", 0)) / 1e6
