"""What every LightningModule here does around its steps: clip, schedule, and share a loss out among processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pytorch_lightning as pl
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torchmetrics import MeanMetric

from attnlab.training.divergence import check_finite
from attnlab.training.optimizer import Optimizer
from attnlab.training.schedule import Schedule
from attnlab.training.stopping import Stopping, is_recorded


class Stepping(Stopping, Protocol):
    """The part of a training's settings that decides about steps."""

    @property
    def optimizer(self) -> Optimizer: ...
    @property
    def schedule(self) -> Schedule: ...
    @property
    def gradient_clip(self) -> float: ...


def log_mean_of_epoch(module: pl.LightningModule, name: str, mean: MeanMetric) -> None:
    """With the last step of an epoch, and of all of them: write down the mean over the epoch's steps so far.

    Lightning's own end of an epoch lies behind the last checkpoint: killed between them, a training would lose it.
    """
    trainer = module.trainer
    if not (trainer.is_last_batch or trainer.global_step >= trainer.max_steps):
        return
    value = float(mean.compute())  # in every process: it is the mean over all of them
    mean.reset()
    if trainer.logger is not None:
        trainer.logger.log_metrics({name: value, "epoch": trainer.current_epoch}, step=trainer.global_step - 1)


def clip_and_log(module: pl.LightningModule, optimizer: Any, settings: Stepping) -> None:
    """Clip by the norm over all parameters, and log the norm as it was before; a limit of 0 does not clip."""
    norm = torch.nn.utils.clip_grad_norm_(module.parameters(), settings.gradient_clip or torch.inf)
    check_finite(module, "the gradient's norm", norm, settings)
    if is_recorded(module, settings):
        module.log("train/gradient_norm", norm)
        module.log("train/learning_rate", optimizer.param_groups[0]["lr"])


def optimizer_and_schedule(module: pl.LightningModule, settings: Stepping) -> Any:
    """What Lightning's `configure_optimizers` returns."""
    optimizer = settings.optimizer(module.parameters())
    steps = int(module.trainer.estimated_stepping_batches)
    entry = settings.schedule(optimizer, steps, settings.monitored_metric, settings.monitor_mode)
    return {"optimizer": optimizer, "lr_scheduler": entry}


def step_plateau(module: pl.LightningModule, settings: Stopping, measured: Mapping[str, Any]) -> None:
    """After a validation: pass the measured metric to a schedule that waits for plateaus."""
    scheduler = module.lr_schedulers()
    if isinstance(scheduler, ReduceLROnPlateau):
        scheduler.step(measured[settings.monitored_metric])


def share_of_a_process(module: pl.LightningModule, count: int) -> float:
    """The mean number of things (tokens, sentences) that a process has in this global batch, `count` being its own.

    Processes average their gradients; with the same divisor in each, the average is the gradient of the mean over all
    of the global batch.
    """
    if module.trainer.world_size == 1:
        return count
    total = torch.tensor(float(count), device=module.device)
    torch.distributed.all_reduce(total)
    return total.item() / module.trainer.world_size
