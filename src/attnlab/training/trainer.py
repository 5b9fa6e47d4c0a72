"""Lightning's Trainer with our callbacks, checkpoints and logger."""

from __future__ import annotations

import ctypes
import logging
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.loggers import Logger

from attnlab.data.datamodule import EpochLengths
from attnlab.training.averaged_weights import AveragedWeights
from attnlab.training.checkpoints import BestCheckpoints, CheckpointFiles, LastCheckpoint
from attnlab.training.continued import ContinuedTraining
from attnlab.training.devices import own_device
from attnlab.training.hardware import Hardware
from attnlab.training.processes import EndWithParent
from attnlab.training.progress import TrainingBar, ValidationLines
from attnlab.training.resume import ExactResume
from attnlab.training.settings import Training
from attnlab.training.speed import SpeedCounters
from attnlab.training.spool import MetricSpool
from attnlab.training.spool_logger import SpoolLogger
from attnlab.training.supervised import SupervisedTrainer
from attnlab.training.trainer_section import trainer_arguments
from attnlab.training.training_length import TrainingLength, check_length, length_of
from attnlab.training.validations import Patience, ValidateAtTheEnd, ValidateEachEpoch


def build_trainer(
    settings: Training,
    hardware: Hardware,
    *,
    epochs: EpochLengths,
    checkpoints: Path,
    spool: MetricSpool,
    identity: str = "",
    callbacks: Sequence[pl.Callback] = (),
    after_checkpoint: Callable[[int], None] = lambda reached: None,
    save_every_minutes: float | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    loggers: Sequence[Logger] = (),
) -> SupervisedTrainer:
    """The trainer of an experiment.

    Args:
        epochs: how many batches the training loader gives in them.
        checkpoints: the folder for the best and the last checkpoint.
        identity: of the experiment, which its checkpoints record.
        after_checkpoint: called after each checkpoint with the spool's offset in it.
        save_every_minutes: between two checkpoints without a validation; None saves at validations
            only.
        options: more arguments of Lightning's Trainer, as `trainer_problems` lets a config give
            them.

    Raises ExperimentError if training is too short for `average_checkpoints`.
    """
    quiet_lightning(hardware.nodes)
    length = length_of(settings, epochs)
    check_length(settings, length)
    first_callbacks = [
        EndWithParent(),
        ContinuedTraining(identity),
        ValidationLines(),
        SpeedCounters(settings.log_every),
        ExactResume(spool, after_checkpoint),
        *_checkpoint_callbacks(settings, checkpoints, save_every_minutes),
        *_optional_callbacks(settings),
    ]
    if epochs.differ and settings.validate_every is None:
        first_callbacks.append(ValidateEachEpoch())
    arguments = {
        **_hardware_arguments(hardware, has_unused=settings.preliminary_steps > 0),
        **_length_arguments(settings, length),
        # Lightning asks a loader for its length once.
        "reload_dataloaders_every_n_epochs": 1 if epochs.differ else 0,
        "log_every_n_steps": settings.log_every,
        "logger": [SpoolLogger(spool), *loggers],
        "plugins": [CheckpointFiles()],
        "callbacks": [*first_callbacks, *callbacks, *_last_callbacks(settings)],
        # Our sampler gives each process its share of every global batch
        "use_distributed_sampler": False,
        "default_root_dir": checkpoints.parent,
        "num_sanity_val_steps": 0,
        "enable_model_summary": False,
        "enable_progress_bar": False,
    }
    # What the config gives comes last: it may replace one of ours.
    arguments.update(trainer_arguments(options, checkpoints.parent))
    return SupervisedTrainer(**arguments)


def _checkpoint_callbacks(
    settings: Training, folder: Path, save_every_minutes: float | None
) -> list[pl.Callback]:
    """What writes the best checkpoints, and the last one."""
    best = BestCheckpoints(
        dirpath=folder,
        filename="{step}",
        monitor=settings.monitored_metric,
        mode=settings.monitor_mode,
        save_top_k=settings.keep_best,
        enable_version_counter=False,
        preliminary_steps=settings.preliminary_steps,
    )
    # After the best ones, whose path and score it saves. Lightning's `save_last` would save only
    # when BestCheckpoints does.
    last = LastCheckpoint(folder, save_every_minutes, settings.accumulate)
    return [best, last]


def _optional_callbacks(settings: Training) -> list[pl.Callback]:
    """Early stopping, and a progress bar at a terminal."""
    callbacks: list[pl.Callback] = []
    if settings.patience is not None:
        early_stopping = Patience(
            settings.monitored_metric,
            patience=settings.patience,
            mode=settings.monitor_mode,
            preliminary_steps=settings.preliminary_steps,
        )
        callbacks.append(early_stopping)
    if sys.stderr.isatty():
        callbacks.append(TrainingBar())
    return callbacks


def _last_callbacks(settings: Training) -> list[pl.Callback]:
    """What comes after the callbacks of the config."""
    averaging: list[pl.Callback] = []
    if settings.average_decay is not None:
        averaging.append(AveragedWeights(settings.average_decay))
    return [*averaging, ReturnFreedMemory(), ValidateAtTheEnd()]


def _hardware_arguments(hardware: Hardware, *, has_unused: bool) -> dict[str, Any]:
    """Where and how Lightning's Trainer computes.

    has_unused: whether some steps leave parts of the model without a gradient. Several processes
        would wait for these gradients.
    """
    own = own_device()  # of a job of a sweep
    strategy: str = hardware.strategy
    if strategy == "single":
        strategy = "auto"
    elif has_unused:
        strategy = f"{strategy}_find_unused_parameters_true"
    return {
        "accelerator": hardware.accelerator,
        "devices": hardware.devices if own is None else [own],
        "num_nodes": hardware.nodes,
        "strategy": strategy,
        "precision": "bf16-mixed" if hardware.precision == "bf16" else "32-true",
    }


def _length_arguments(settings: Training, length: TrainingLength) -> dict[str, Any]:
    """When Lightning's Trainer validates and ends.

    Lightning counts what the training loader yields: each part of a batch.
    """
    max_time = None
    if settings.max_minutes is not None:
        max_time = timedelta(minutes=settings.max_minutes)
    limit_train_batches = None
    if settings.limit_batches is not None:
        limit_train_batches = settings.limit_batches * settings.accumulate
    return {
        "max_steps": length.steps,
        "max_epochs": -1,
        "max_time": max_time,
        "accumulate_grad_batches": settings.accumulate,
        "limit_train_batches": limit_train_batches,
        "limit_val_batches": settings.limit_batches,
        "val_check_interval": length.validate_every * settings.accumulate,
        "check_val_every_n_epoch": None,
    }


class ReturnFreedMemory(pl.Callback):
    """Trims the heap after each validation, if the C library can (glibc).

    Decoding and drawing in a validation fragment the heap; without trimming, the process grows with
    each validation.
    """

    def __init__(self) -> None:
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda pad: None)

    def on_validation_end(self, *args: Any) -> None:
        self._trim(0)


def quiet_lightning(nodes: int = 1) -> None:
    """Hide Lightning's information, but for a profiler's report, and known harmless warnings.

    nodes: of the training; several need `srun`, so that there Lightning may warn that it is not
        used.
    """
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    # Of trainer.profiler, for the terminal and the log file
    reports = logging.getLogger("pytorch_lightning.profilers")
    reports.setLevel(logging.INFO)
    reports.handlers = [logging.StreamHandler()]
    harmless = [
        "does not have many workers", "Checkpoint directory .* exists and is not empty",
        "sync_dist=True", "LeafSpec", "GPU available but not used",
        # Of a layer whose weights are made anew in each pass
        "RNN module weights are not part of single contiguous chunk",
        "number of training batches .* is smaller than the logging interval",
    ]  # fmt: skip
    if nodes == 1:
        harmless.append("`srun` command is available on your system but is not used")
    for text in harmless:
        warnings.filterwarnings("ignore", f".*{text}.*")
