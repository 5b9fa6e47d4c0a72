"""Checkpoints: how and when they are written, which are the best, and what is read from them.

The final model and the results are read from checkpoints.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint, ModelCheckpoint
from pytorch_lightning.plugins.io import TorchCheckpointIO
from torch import Tensor

from attnlab.errors import ExperimentError
from attnlab.files import atomic_file, sync
from attnlab.training.module import check_weights
from attnlab.training.processes import StopSignals, is_to_requeue, requeue_job
from attnlab.training.speed import SpeedCounters
from attnlab.training.spool import BEFORE_LAST, LAST

# Separates the model's weights from the metrics and other state of the LightningModule
_PREFIX = "model."


class CheckpointFiles(TorchCheckpointIO):
    """Writes Lightning's checkpoints atomically.

    The previous `last.ckpt` is kept in case the new one is damaged. Lightning writes to the
    temporary folder and moves the file from there: between file systems that is a copy, which a
    killed process leaves incomplete.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None
    ) -> None:
        """Write a checkpoint.

        Raises ExperimentError if the file cannot be written (a full disk, no permission); older
        checkpoints stay.
        """
        path = Path(path)
        try:
            with atomic_file(path) as temporary:
                # Given a path, torch hides why it could not write
                with temporary.open("wb") as file:
                    torch.save(checkpoint, file)
                if path.name == LAST and path.exists():
                    # A full disk may show only here, when the last one must still be in its place
                    sync(temporary)
                    os.replace(path, path.with_name(BEFORE_LAST))
        except (OSError, RuntimeError) as error:
            # When torch closes a file on a full disk, its own RuntimeError hides the OSError.
            fault = error if isinstance(error, OSError) else error.__context__
            if not isinstance(fault, OSError):
                raise
            raise ExperimentError(
                f"the checkpoint {path} could not be written: {fault.strerror}; older checkpoints "
                "are still there: free some space or set paths.runs to another folder, and the "
                "same command resumes from the last of them"
            ) from error


def checkpoint_step(path: Path) -> int:
    """The optimiser steps that a checkpoint's training had made.

    Raises ValueError, with the reason, for a damaged file: every part has a checksum (CRC-32), and
    pickles are refused.
    """
    try:
        with zipfile.ZipFile(path) as parts:
            damaged = parts.testzip()
        if damaged is not None:
            raise ValueError(f"the checksum of its part {damaged} is wrong")
        checkpoint = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        return int(checkpoint["global_step"])
    except Exception as error:  # whatever zipfile, torch or pickle raise for an invalid file
        first_line = str(error).strip().split("\n")[0]
        raise ValueError(first_line or type(error).__name__) from error


class BestCheckpoints(ModelCheckpoint):
    """Lightning's ModelCheckpoint, which saves the names of its files and not their paths.

    With paths, a training that resumes after its folder was moved would look for its best
    checkpoints in the old place.

    preliminary_steps: validations up to this step are passed over.
    """

    def __init__(self, *, preliminary_steps: int = 0, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._preliminary_steps = preliminary_steps

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.global_step > self._preliminary_steps:
            super().on_validation_end(trainer, pl_module)

    def state_dict(self) -> dict[str, Any]:
        state = _with_paths(super().state_dict(), lambda path: Path(path).name)
        return {**state, "dirpath": None}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        folder = Path(str(self.dirpath))
        state = _with_paths(state_dict, lambda name: str(folder / name))
        super().load_state_dict({**state, "dirpath": self.dirpath})
        self._keep_fewer()

    def _keep_fewer(self) -> None:
        """Forget the worst checkpoints where another training, which this one continues, kept more.

        Lightning removes a checkpoint only when it has exactly `save_top_k`.
        """
        scores = self.best_k_models
        if len(scores) <= self.save_top_k:
            return
        ranked = sorted(scores, key=lambda path: float(scores[path]), reverse=self.mode == "max")
        best = ranked[: self.save_top_k]
        self.best_k_models = {path: scores[path] for path in best}
        self.kth_best_model_path = best[-1]
        self.kth_value = scores[best[-1]]


def _with_paths(state: dict[str, Any], convert: Callable[[str], str]) -> dict[str, Any]:
    """The state of a ModelCheckpoint with each of its paths converted."""
    converted = dict(state)
    for field in ("best_model_path", "kth_best_model_path", "last_model_path"):
        if state[field]:  # "" means that there is no file
            converted[field] = convert(state[field])

    best = state["best_k_models"]
    converted["best_k_models"] = {convert(path): score for path, score in best.items()}
    return converted


class LastCheckpoint(Checkpoint):
    """Writes `last.ckpt` after each validation, after `every_minutes` without one, and on a signal.

    By time and on a stop signal it is written between two steps; all processes of a training write
    at the same step.

    every_minutes: None writes at validations and on signals only.
    accumulate: parts of a batch; a training cannot resume between them.
    """

    def __init__(self, folder: Path, every_minutes: float | None, accumulate: int = 1) -> None:
        self._path = folder / LAST
        self._every = None if every_minutes is None else 60 * every_minutes
        self._accumulate = accumulate
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

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        if batch_idx % self._accumulate:
            return
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
            name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
            resumes = requeue_job() if is_to_requeue(number) else "the same command resumes"
            saved = f"saved at step {trainer.global_step}; {resumes} from there"
            if not self._path.is_file():
                resumes = resumes.replace("resumes", "starts the training again")
                saved = f"nothing was saved yet; {resumes}"
            print(f"{name}: {saved}", file=sys.stderr)
        if is_to_requeue(number):
            # A cluster may kill all processes of a job as soon as one of them fails.
            trainer.strategy.barrier("requeued")
        self._signals.handle(number)

    def _save_between_steps(self, trainer: pl.Trainer) -> None:
        # Lightning has already counted the batch that is about to start; with that count in the
        # checkpoint, a resumed training would skip the batch.
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
        self._saved_step = trainer.global_step
        self._saved_at = time.monotonic()


def _in_any_process(trainer: pl.Trainer, number: int, due: bool) -> tuple[int, bool]:
    """The signal that any process received, and whether a checkpoint is due in any process."""
    if trainer.world_size == 1:
        return number, due
    asked = torch.tensor([number, int(due)], device=trainer.strategy.root_device)
    torch.distributed.all_reduce(asked, torch.distributed.ReduceOp.MAX)
    return int(asked[0]), bool(asked[1])


def outcome_of(checkpoint: ModelCheckpoint) -> dict[str, Any]:
    """What a sweep can optimise in a finished training.

    quality: the best value of the metric `monitor`, None if there is none; higher_is_better.
    training_cpu_seconds: processor time of training, without validations.

    Like `best_checkpoints`, it is read from the last checkpoint: the callbacks hold it only in the
    process that trained, which may be a forked one.
    """
    states = _callback_states(checkpoint)
    score = states[checkpoint.state_key]["best_model_score"]
    seconds = states[SpeedCounters.__qualname__]["training_cpu"]
    return {
        "quality": None if score is None else float(score),
        "monitor": checkpoint.monitor,
        "higher_is_better": checkpoint.mode == "max",
        "training_cpu_seconds": float(seconds),
    }


def best_checkpoints(checkpoint: ModelCheckpoint, count: int) -> list[Path]:
    """The `count` best checkpoints of a finished training, best first, or all if there are fewer.

    Raises ExperimentError if one of them is damaged, or there is none.
    """
    if not checkpoint.best_model_path:
        raise ExperimentError(
            "the training has no checkpoint to make a model of: it ended before its first "
            "validation with the whole model, which training.attention_schedule.from_step or a "
            "callback that stops the training decides; train longer"
        )
    best = Path(checkpoint.best_model_path)
    ranked = [best]
    if count > 1:
        state = _callback_states(checkpoint)[checkpoint.state_key]
        scores = {
            best.with_name(name): float(score) for name, score in state["best_k_models"].items()
        }
        by_score = sorted(scores, key=scores.__getitem__, reverse=checkpoint.mode == "max")
        # Among equal scores, Lightning's best one stays the first.
        others = [path for path in by_score if path != best]
        ranked = [best, *others][:count]

    for path in ranked:
        try:
            checkpoint_step(path)
        except ValueError as damage:
            raise ExperimentError(
                f"the checkpoint {path}, needed for the final model, is damaged: {damage}; train "
                "again with rerun=true"
            ) from None
    return ranked


def averaged_weights(checkpoints: Sequence[Path]) -> tuple[dict[str, Tensor], int]:
    """The mean of the checkpoints' weights, and the step of the first, the best one.

    The average of one training's checkpoints is often better than the best of them, and unlike an
    ensemble costs nothing at inference (Junczys-Dowmunt et al. 2016, section 2.3; Sockeye takes the
    best N too, fairseq the last N).

    Sums are in float64, so that one checkpoint gives its own bits. Tensors of other types than
    floating point (counters) are those of the first.
    """
    first, *others = checkpoints
    weights, step = _weights_and_step(first)
    sums = {name: value.double() for name, value in weights.items() if value.is_floating_point()}
    for path in others:
        values, _ = _weights_and_step(path)
        for name in sums:
            sums[name] += values[name]

    averaged = dict(weights)
    for name, total in sums.items():
        mean = total / len(checkpoints)
        averaged[name] = mean.to(weights[name].dtype)
    return averaged, step


def _weights_and_step(path: Path) -> tuple[dict[str, Tensor], int]:
    """The weights of the model in a checkpoint, and the optimiser steps behind it."""
    checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    weights = {}
    for name, value in checkpoint["state_dict"].items():
        if name.startswith(_PREFIX):
            weights[name.removeprefix(_PREFIX)] = value
    return weights, int(checkpoint["global_step"])


def _callback_states(checkpoint: ModelCheckpoint) -> dict[str, Any]:
    """The final state of each callback, by its key."""
    last = Path(checkpoint.best_model_path).parent / LAST
    return torch.load(last, map_location="cpu", weights_only=True)["callbacks"]
