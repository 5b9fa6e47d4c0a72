"""Lightning's Trainer, as an experiment sets it up."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import EarlyStopping

from attnlab.errors import ExperimentError
from attnlab.training.best_checkpoints import BestCheckpoints
from attnlab.training.checkpoint_file import CheckpointFiles
from attnlab.training.freed_memory import ReturnFreedMemory
from attnlab.training.hardware import Hardware
from attnlab.training.last_checkpoint import LastCheckpoint
from attnlab.training.orphans import EndWithParent
from attnlab.training.progress import TrainingProgress
from attnlab.training.resume import ExactResume
from attnlab.training.speed import SpeedCounters
from attnlab.training.spool import SpoolLogger
from attnlab.training.stopping import Stopping, total_steps


def build_trainer(
    settings: Stopping,
    hardware: Hardware,
    steps_per_epoch: int,
    checkpoints: Path,
    spool: SpoolLogger,
    callbacks: Sequence[pl.Callback] = (),
    saved: Callable[[int], None] = lambda reached: None,
    save_every_minutes: float | None = None,
) -> tuple[pl.Trainer, BestCheckpoints]:
    """The trainer, and the callback that knows its best checkpoint.

    Args:
        steps_per_epoch: batches of an epoch, for validations and limits that are counted in epochs.
        checkpoints: the folder for the best and the last checkpoint.
        saved: called after a checkpoint with how far the spool reached in it.
        save_every_minutes: after which the last checkpoint is written between validations too; None: never.

    Raises ExperimentError where training is too short for the checkpoints that are to be averaged.
    """
    _quiet()
    steps = total_steps(settings, steps_per_epoch)
    validate_every = min(settings.validate_every or steps_per_epoch, steps)
    validations = math.ceil(steps / validate_every)
    if settings.average_checkpoints > validations:
        raise ExperimentError(
            f"training.average_checkpoints must be at most the number of validations, each of which makes one "
            f"checkpoint, got {settings.average_checkpoints}, but {steps} steps are validated {validations} "
            f"time(s), every {validate_every}; choose a smaller training.validate_every or a longer training"
        )
    checkpoint = BestCheckpoints(
        dirpath=checkpoints,
        filename="{step}",
        monitor=settings.monitored_metric,
        mode=settings.monitor_mode,
        save_top_k=settings.keep_best,
        enable_version_counter=False,
    )
    own: list[pl.Callback] = [
        EndWithParent(),
        TrainingProgress(),
        SpeedCounters(settings.log_every),
        ReturnFreedMemory(),
        ExactResume(spool.spool, saved),
        ValidateAtTheEnd(),
        checkpoint,
        # Behind the best one, whose path and score it holds. `save_last` would copy that one only.
        LastCheckpoint(checkpoints, save_every_minutes),
    ]
    if settings.patience is not None:
        own.append(Patience(settings.monitored_metric, patience=settings.patience, mode=settings.monitor_mode))
    precision: Any = "bf16-mixed" if hardware.precision == "bf16" else "32-true"
    trainer = pl.Trainer(
        accelerator=hardware.accelerator,
        devices=hardware.devices,
        num_nodes=hardware.nodes,
        strategy="auto" if hardware.strategy == "single" else hardware.strategy,
        precision=precision,
        max_steps=steps,
        max_epochs=-1,
        val_check_interval=validate_every,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        log_every_n_steps=settings.log_every,
        logger=spool,
        plugins=[CheckpointFiles()],
        callbacks=[*own, *callbacks],
        use_distributed_sampler=False,  # our sampler gives each process its share of every global batch
        enable_model_summary=False,
        default_root_dir=checkpoints.parent,
    )
    return trainer, checkpoint


class ValidateAtTheEnd(pl.Callback):
    """The last step is validated too, where it is no multiple of `validate_every`; else what it learned is lost."""

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        if trainer.global_step >= trainer.max_steps:
            trainer.should_stop = True  # Lightning validates before it stops


class Patience(EarlyStopping):
    """One that had run out when the last checkpoint was written has run out still."""

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.wait_count >= self.patience:
            trainer.should_stop = True


def _quiet() -> None:
    """Hide what Lightning logs about itself; errors and other warnings still show."""
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    warnings.filterwarnings("ignore", ".*Checkpoint directory .* exists and is not empty.*")
    warnings.filterwarnings("ignore", ".*sync_dist=True.*")
    warnings.filterwarnings("ignore", ".*GPU available but not used.*")
    warnings.filterwarnings("ignore", ".*number of training batches .* is smaller than the logging interval.*")
    warnings.filterwarnings("ignore", ".*LeafSpec.*")
