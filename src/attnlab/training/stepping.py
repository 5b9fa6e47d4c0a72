"""What both LightningModules do around a step: clip, log, schedule, divide the loss, stop a diverged training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torchmetrics import MeanMetric

from attnlab.errors import ExperimentError
from attnlab.training.settings import Training

# For torchmetrics' means: by default they drop NaN, which hides a diverged training; "disable" ignores weights.
KEEP_NAN = math.nan
_REMEDY = "try a smaller training.optimizer.learning_rate; the last checkpoint holds the state before"


def is_recorded(module: pl.LightningModule, settings: Training) -> bool:
    """Whether this step's metrics are logged.

    Lightning would collect the metrics of all steps, which takes noticeable time in small models, and drop the rest.
    """
    step = module.global_step + 1
    return step % settings.log_every == 0 or step >= module.trainer.max_steps


def log_mean_of_epoch(module: pl.LightningModule, name: str, mean: MeanMetric) -> None:
    """Log the mean over the epoch's steps so far, after the last step of an epoch and of the training.

    Lightning's own end of an epoch comes after the last checkpoint: a training killed in between would lose the mean.
    """
    trainer = module.trainer
    if not (trainer.is_last_batch or trainer.global_step >= trainer.max_steps):
        return
    value = float(mean.compute())  # in every process, because it is the mean over all of them
    mean.reset()
    if trainer.logger is not None:
        trainer.logger.log_metrics({name: value, "epoch": trainer.current_epoch}, step=trainer.global_step - 1)


def clip_and_log(module: pl.LightningModule, optimizer: Any, settings: Training) -> None:
    """Clip by the norm over all parameters, and log the norm from before; a limit of 0 does not clip."""
    norm = torch.nn.utils.clip_grad_norm_(module.parameters(), settings.gradient_clip or torch.inf)
    check_finite(module, "the gradient's norm", norm, settings)
    if is_recorded(module, settings):
        module.log("train/gradient_norm", norm)
        module.log("train/learning_rate", optimizer.param_groups[0]["lr"])


def optimizer_and_schedule(module: pl.LightningModule, settings: Training) -> Any:
    """What Lightning's `configure_optimizers` returns."""
    optimizer = settings.optimizer(module.parameters())
    steps = int(module.trainer.estimated_stepping_batches)
    entry = settings.schedule(optimizer, steps, settings.monitored_metric, settings.monitor_mode)
    return {"optimizer": optimizer, "lr_scheduler": entry}


def step_plateau(module: pl.LightningModule, settings: Training, measured: Mapping[str, Any]) -> None:
    """After a validation: pass the monitored metric to a plateau schedule."""
    scheduler = module.lr_schedulers()
    if isinstance(scheduler, ReduceLROnPlateau):
        scheduler.step(measured[settings.monitored_metric])


def count_per_process(module: pl.LightningModule, count: int) -> float:
    """The mean number of tokens or sentences of a process in this global batch; `count` is this process's own number.

    Processes average their gradients. With the same divisor in each, the average is the gradient of the mean over the
    whole global batch.
    """
    if module.trainer.world_size == 1:
        return count
    total = torch.tensor(float(count), device=module.device)
    torch.distributed.all_reduce(total)
    return total.item() / module.trainer.world_size


def check_finite(module: pl.LightningModule, what: str, value: Tensor, settings: Training) -> None:
    """Raise ExperimentError if a step's loss or gradient norm is not finite, before the optimiser uses it.

    On an accelerator, where reading a value waits for the device, only in steps whose metrics are logged.
    """
    if value.device.type != "cpu" and not is_recorded(module, settings):
        return
    if bool(value.isfinite()):
        return
    optimizer: Any = module.optimizers()
    tries = [f"a smaller training.optimizer.learning_rate (it is {optimizer.param_groups[0]['lr']:g} in this step)"]
    if not settings.gradient_clip:
        tries.append("training.gradient_clip=1.0 (nothing is clipped now)")
    if module.trainer.precision != "32-true":
        tries.append("hardware.precision=32")
    raise ExperimentError(
        f"training diverged in step {module.global_step + 1} (epoch {module.current_epoch}): {what} is "
        f"{value.item()}; try {' or '.join(tries)}; the last checkpoint holds the state before"
    )


def check_validation(module: pl.LightningModule, nll: Tensor) -> None:
    """Raise ExperimentError, before any checkpoint is written, if a validation's loss is not finite."""
    if not bool(nll.isfinite()):
        raise ExperimentError(
            f"training diverged before step {module.global_step + 1}: the validation's loss is {nll.item()}; {_REMEDY}"
        )


def check_weights(module: pl.LightningModule) -> None:
    """Raise ExperimentError, before a checkpoint is written, if a weight is not finite."""
    for name, weight in module.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise ExperimentError(
                f"training diverged before step {module.global_step + 1}: {name} is no longer finite; {_REMEDY}"
            )
