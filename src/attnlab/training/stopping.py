"""What the settings of every training say of its length, its validations and its checkpoints, whatever is trained."""

from __future__ import annotations

from typing import Literal, Protocol

import pytorch_lightning as pl


class Stopping(Protocol):
    """The part of a training's settings that the trainer goes by."""

    @property
    def max_steps(self) -> int | None: ...
    @property
    def max_epochs(self) -> int | None: ...
    @property
    def validate_every(self) -> int | None: ...
    @property
    def monitored_metric(self) -> str: ...
    @property
    def monitor_mode(self) -> Literal["min", "max"]: ...
    @property
    def patience(self) -> int | None: ...
    @property
    def log_every(self) -> int: ...
    @property
    def keep_best(self) -> int: ...
    @property
    def average_checkpoints(self) -> int: ...


def check_stopping(settings: Stopping) -> None:
    """Raises ValueError where training would never end, or where more is averaged than is kept."""
    if settings.max_steps is None and settings.max_epochs is None:
        raise ValueError("max_steps and max_epochs are both null; give at least one, or training never ends")
    if settings.average_checkpoints > settings.keep_best:
        raise ValueError(
            f"average_checkpoints must be at most keep_best, for no others stay on disk, got "
            f"{settings.average_checkpoints} and keep_best {settings.keep_best}; choose training.keep_best="
            f"{settings.average_checkpoints} or average fewer"
        )


def total_steps(settings: Stopping, steps_per_epoch: int) -> int:
    """The steps after which training ends at the latest."""
    limits = [settings.max_steps] if settings.max_steps is not None else []
    if settings.max_epochs is not None:
        limits.append(settings.max_epochs * steps_per_epoch)
    return min(limits)


def is_recorded(module: pl.LightningModule, settings: Stopping) -> bool:
    """Whether the metrics of this step are written down. Of the others Lightning would take the metrics too, at a
    price that small models feel, and drop them."""
    step = module.global_step + 1
    return step % settings.log_every == 0 or step >= module.trainer.max_steps
