"""Memory that is free goes back to the system after every validation, and when training ends."""

from __future__ import annotations

import ctypes
from typing import Any

import pytorch_lightning as pl


class ReturnFreedMemory(pl.Callback):
    """Trims the heap after each validation, before the next batch, and after training, where the C library can (glibc).

    A validation decodes and draws: it leaves the heap full of holes that the tensors of training do not fit into, and
    with every one of them the process would hold more.
    """

    def __init__(self) -> None:
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        self._validated = False

    def on_validation_end(self, *args: Any, **kwargs: Any) -> None:
        self._validated = True

    def on_train_batch_start(self, *args: Any, **kwargs: Any) -> None:
        if self._validated:
            self._return()
        self._validated = False

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        self._return()

    def _return(self) -> None:
        if self._trim is not None:
            self._trim(0)
