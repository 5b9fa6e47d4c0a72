"""The checkpoint that a stopped training goes on from."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint

from attnlab.training.checkpoint_file import LAST
from attnlab.training.divergence import check_weights
from attnlab.training.stop_signals import StopSignals


class LastCheckpoint(Checkpoint):
    """Writes `last.ckpt` after every validation, after so many minutes without one, and when a signal asks to stop.

    By time and by signal it is written between two steps, when all of the step before is done and none of the next;
    all processes of a training write at the same step.

    every_minutes: None writes at validations and signals only.
    """

    def __init__(self, folder: Path, every_minutes: float | None) -> None:
        self._path = folder / LAST
        self._every = None if every_minutes is None else 60 * every_minutes
        self._signals = StopSignals()
        self._saved_step = -1
        self._saved_at = 0.0

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        self._signals.remember_handlers()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._saved_at = time.monotonic()
        self._saved_step = trainer.global_step
        self._signals.listen()

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        check_weights(pl_module)  # before any checkpoint is written

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._save(trainer)

    def on_train_batch_start(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        due = self._every is not None and time.monotonic() >= self._saved_at + self._every
        number, due = _agreed(trainer, self._signals.received or 0, due)
        if (number or due) and trainer.global_step != self._saved_step:
            self._save_between_steps(trainer)
        if number:
            self._stop(trainer, number)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # In the last validation, behind which there is no step to be asked at.
        number, _ = _agreed(trainer, self._signals.received or 0, False)
        if number:
            self._stop(trainer, number)

    def _stop(self, trainer: pl.Trainer, number: int) -> None:
        if trainer.is_global_zero:
            name = signal.Signals(number).name
            print(f"{name}: saved at step {trainer.global_step}; the same command goes on from there", file=sys.stderr)
        self._signals.answer(number)

    def _save_between_steps(self, trainer: pl.Trainer) -> None:
        # Lightning has counted the batch that is about to start. A checkpoint that says so would go on with the one
        # behind it.
        progress = trainer.fit_loop.epoch_loop.batch_progress
        for counted in (progress.total, progress.current):
            counted.ready -= 1
        try:
            check_weights(trainer.lightning_module)
            self._save(trainer)
        finally:
            for counted in (progress.total, progress.current):
                counted.ready += 1

    def _save(self, trainer: pl.Trainer) -> None:
        trainer.save_checkpoint(self._path)
        self._saved_step, self._saved_at = trainer.global_step, time.monotonic()


def _agreed(trainer: pl.Trainer, number: int, due: bool) -> tuple[int, bool]:
    """What any of the processes has been asked for."""
    if trainer.world_size == 1:
        return number, due
    asked = torch.tensor([number, int(due)], device=trainer.strategy.root_device)
    torch.distributed.all_reduce(asked, torch.distributed.ReduceOp.MAX)
    return int(asked[0]), bool(asked[1])
