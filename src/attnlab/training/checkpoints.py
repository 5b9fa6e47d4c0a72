"""Checkpoints: the last one, to resume from, and the best ones, of which the model is made; how they are written."""

from __future__ import annotations

import os
import signal
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint, ModelCheckpoint
from pytorch_lightning.plugins.io import TorchCheckpointIO

from attnlab.errors import ExperimentError
from attnlab.files import atomic_file, sync
from attnlab.training.processes import StopSignals
from attnlab.training.stepping import check_weights

LAST, BEFORE_LAST = "last.ckpt", "before_last.ckpt"


class CheckpointFiles(TorchCheckpointIO):
    """Writes Lightning's checkpoints atomically, and keeps the previous `last.ckpt` in case the new one is damaged.

    Lightning writes to the temporary folder and moves the file from there: between file systems that is a copy, which a
    killed process leaves incomplete.
    """

    def __init__(self) -> None:
        self._last_is_damaged = False

    def load_checkpoint(self, path: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        # Training resumes from the previous one only if the last one is damaged or missing.
        self._last_is_damaged = Path(path).name == BEFORE_LAST
        return super().load_checkpoint(path, *args, **kwargs)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Raises ExperimentError if the file cannot be written (a full disk, no permission); older checkpoints stay."""
        path = Path(path)
        try:
            with atomic_file(path) as temporary:
                torch.save(checkpoint, temporary)
                if path.name == LAST and path.exists() and not self._last_is_damaged:
                    sync(temporary)  # a full disk may show only here, when the last one must still be in its place
                    os.replace(path, path.with_name(BEFORE_LAST))
            self._last_is_damaged &= path.name != LAST
        except (OSError, RuntimeError) as error:
            # torch raises a RuntimeError of its own for a full disk.
            reason = error.strerror if isinstance(error, OSError) else _write_problem(path.parent)
            raise ExperimentError(
                f"the checkpoint {path} could not be written: {reason}; older checkpoints are still there: free some "
                f"space or set paths.runs to another folder, and the same command resumes from the last of them"
            ) from error


def checkpoint_step(path: Path) -> int:
    """The optimiser steps that a checkpoint's training had made.

    Raises ValueError, with the reason, for a damaged file: every part has a checksum (CRC-32), and pickles are refused.
    """
    try:
        with zipfile.ZipFile(path) as parts:
            damaged = parts.testzip()
        if damaged is not None:
            raise ValueError(f"the checksum of its part {damaged} is wrong")
        return int(torch.load(path, map_location="cpu", weights_only=True, mmap=True)["global_step"])
    except ValueError:
        raise
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except Exception as error:  # whatever zipfile, torch or pickle raise for an invalid file
        raise ValueError(str(error).strip().split("\n")[0] or type(error).__name__) from error


def _write_problem(folder: Path) -> str:
    """Why torch could not write, found by trying to write."""
    probe = folder / f".probe.{os.getpid()}"
    try:
        probe.write_bytes(bytes(1 << 20))
    except OSError as error:
        return str(error.strerror)
    finally:
        probe.unlink(missing_ok=True)
    return "no space left on the device"


class BestCheckpoints(ModelCheckpoint):
    """Lightning's ModelCheckpoint, which saves the names of its files and not their paths.

    With paths, a training that resumes after its folder was moved would look for its best checkpoints in the old place.
    """

    def state_dict(self) -> dict[str, Any]:
        return {**_renamed(super().state_dict(), lambda path: Path(path).name), "dirpath": None}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        placed = _renamed(state_dict, lambda name: str(Path(str(self.dirpath)) / name))
        super().load_state_dict({**placed, "dirpath": self.dirpath})


def _renamed(state: dict[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    names = ("best_model_path", "kth_best_model_path", "last_model_path")
    paths = {name: rename(state[name]) if state[name] else "" for name in names}  # "" means that there is no file
    return {**state, **paths, "best_k_models": {rename(path): score for path, score in state["best_k_models"].items()}}


class LastCheckpoint(Checkpoint):
    """Writes `last.ckpt` after every validation, after `every_minutes` without one, and on a stop signal.

    By time and on a signal it is written between two steps; all processes of a training write at the same step.

    every_minutes: None writes at validations and on signals only.
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
        number, due = _in_any_process(trainer, self._signals.received or 0, due)
        if (number or due) and trainer.global_step != self._saved_step:
            self._save_between_steps(trainer)
        if number:
            self._stop(trainer, number)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # A signal during the last validation, after which no further step starts.
        number, _ = _in_any_process(trainer, self._signals.received or 0, False)
        if number:
            self._stop(trainer, number)

    def _stop(self, trainer: pl.Trainer, number: int) -> None:
        if trainer.is_global_zero:
            name = signal.Signals(number).name
            print(f"{name}: saved at step {trainer.global_step}; the same command resumes from there", file=sys.stderr)
        self._signals.handle(number)

    def _save_between_steps(self, trainer: pl.Trainer) -> None:
        # Lightning has already counted the batch that is about to start; with that count in the checkpoint, a resumed
        # training would skip the batch.
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


def _in_any_process(trainer: pl.Trainer, number: int, due: bool) -> tuple[int, bool]:
    """The signal that any of the processes received, and whether a checkpoint is due in any of them."""
    if trainer.world_size == 1:
        return number, due
    asked = torch.tensor([number, int(due)], device=trainer.strategy.root_device)
    torch.distributed.all_reduce(asked, torch.distributed.ReduceOp.MAX)
    return int(asked[0]), bool(asked[1])
