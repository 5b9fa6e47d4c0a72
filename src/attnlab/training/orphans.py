"""Of several training processes none outlives the one that started it."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytorch_lightning as pl

_SECONDS = 0.2  # between looks; whatever goes on from the last checkpoint takes longer to start


class EndWithParent(pl.Callback):
    """Ends a process whose parent was killed: it would train on, and write, beside the one that goes on from there.

    torch interrupts them itself, but what a shell's script runs in the background is deaf to interrupts.

    The processes of `ddp_fork` are children of the one that made this; those of `ddp`, but for the first of each node,
    are children of that one, of torchrun or of Slurm.
    """

    def __init__(self) -> None:
        self._made_in, self._parent = os.getpid(), os.getppid()

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if os.getpid() != self._made_in:
            self._watch(self._made_in)
        elif trainer.local_rank > 0:
            self._watch(self._parent)

    def _watch(self, parent: int) -> None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)  # whatever it is in the middle of: what it writes is whole or not there
