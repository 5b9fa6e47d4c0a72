"""Memory of a training: freed memory is returned to the system, and running out of it is explained."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytorch_lightning as pl
import torch

from attnlab.errors import ExperimentError

_WANTED = re.compile(r"tried to allocate ([\d.]+ ?\w*)", re.IGNORECASE)


class ReturnFreedMemory(pl.Callback):
    """Trims the heap after each validation, before the next batch, and after training, if the C library can (glibc).

    Decoding and drawing in a validation fragment the heap; without trimming, the process grows with each validation.
    """

    def __init__(self) -> None:
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda pad: None)
        self._validated = False

    def on_validation_end(self, *args: Any, **kwargs: Any) -> None:
        self._validated = True

    def on_train_batch_start(self, *args: Any, **kwargs: Any) -> None:
        if self._validated:
            self._trim(0)
        self._validated = False

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        self._trim(0)


@contextmanager
def explain_out_of_memory(remedy: str) -> Iterator[None]:
    """Raise ExperimentError `out of memory (...); <remedy>` if the device or the process runs out of memory.

    A process that the system kills for its memory cannot report it.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        known = isinstance(error, (MemoryError, torch.OutOfMemoryError))
        if not known and "can't allocate memory" not in str(error):
            raise
        wanted = _WANTED.search(str(error))
        size = f" (while allocating a tensor of {wanted[1]})" if wanted else ""
        raise ExperimentError(f"out of memory{size}; {remedy}") from error
