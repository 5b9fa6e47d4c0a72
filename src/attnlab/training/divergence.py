"""Training that has lost its numbers stops at once, with what to try; its checkpoints keep the state before."""

from __future__ import annotations

import math
from typing import Any, Protocol

import pytorch_lightning as pl
import torch
from torch import Tensor

from attnlab.errors import ExperimentError
from attnlab.training.stopping import Stopping, is_recorded

# Of torchmetrics' means: by default they leave such values out, and a training that is lost looks well. Their "disable"
# forgets the weights.
NAN_STAYS = math.nan
_SMALLER = "try a smaller training.optimizer.learning_rate; what was learned before is kept in the last checkpoint"


class Clipping(Stopping, Protocol):
    """The part of a training's settings that this speaks of."""

    @property
    def gradient_clip(self) -> float: ...


def check_finite(module: pl.LightningModule, what: str, value: Tensor, settings: Clipping) -> None:
    """Raise ExperimentError where a step's loss, or the norm of its gradient, is not finite: before it is learned from.

    On an accelerator, which it takes a wait to ask, only in steps whose metrics are recorded.
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
        f"{value.item()}; try {' or '.join(tries)}; what was learned before is kept in the last checkpoint"
    )


def check_validation(module: pl.LightningModule, nll: Tensor) -> None:
    """Raise ExperimentError, before any checkpoint is written, where a validation's loss is not finite."""
    if not bool(nll.isfinite()):
        raise ExperimentError(
            f"training diverged before step {module.global_step + 1}: the validation's loss is {nll.item()}; {_SMALLER}"
        )


def check_weights(module: pl.LightningModule) -> None:
    """Raise ExperimentError before weights are saved that are not finite."""
    for name, weight in module.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise ExperimentError(
                f"training diverged before step {module.global_step + 1}: {name} is no longer finite; {_SMALLER}"
            )
