"""A training that goes on from the last checkpoint of another experiment, with its own settings."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

from attnlab.training.optimisation import PlateauSchedule, follows_step

_KEY = "experiment"

# What these schedulers of torch set at each step, beside the rate.
_CYCLED = ("betas", "momentum")


class ContinuedTraining(pl.Callback):
    """Lets the settings of this experiment hold where a checkpoint of another one is loaded.

    Checkpoints restore settings as well as state: Lightning would go on with the other experiment's
    learning rate, weight decay and patience. What cannot change between two trainings is refused
    before (see `attnlab.experiment.continued`). A checkpoint of the same experiment is left as it
    is, so that an interrupted training resumes exactly.

    identity: of the experiment that is trained; every checkpoint records it.
    """

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._changes_settings = False

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]
    ) -> None:
        checkpoint[_KEY] = self._identity

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]
    ) -> None:
        self._changes_settings = checkpoint.get(_KEY) != self._identity
        if not self._changes_settings:
            return
        callbacks: Sequence[pl.Callback] = trainer.callbacks  # type: ignore[attr-defined]
        for callback in callbacks:
            restored = checkpoint["callbacks"].get(callback.state_key)
            if restored is not None:
                restored.update(_own_settings(callback, restored))
        schedule = pl_module.settings.schedule
        if follows_step(schedule):
            # The other experiment may have a schedule of another kind, whose state would not fit.
            checkpoint["lr_schedulers"] = []

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if not self._changes_settings:
            return
        self._changes_settings = False
        schedule = pl_module.settings.schedule
        (optimizer,) = trainer.optimizers
        configured = pl_module.settings.optimizer(pl_module.parameters())
        scheduler = pl_module.lr_schedulers()

        if follows_step(schedule):
            _set_groups(optimizer, configured)
            _move_to_step(scheduler, trainer.global_step)
        elif isinstance(schedule, PlateauSchedule):
            _set_groups(optimizer, configured, but=("lr",))
            _set_plateau(scheduler, schedule)
        else:
            # The rate, and sometimes the momentum, are what the scheduler has made of them.
            _set_groups(optimizer, configured, but=("lr", *_cycled_by(scheduler)))


def _own_settings(callback: pl.Callback, restored: dict[str, Any]) -> dict[str, Any]:
    """Those fields of a restored state that are settings, as this callback was constructed."""
    settings: set[str] = set()
    for kind in type(callback).__mro__:
        constructor = vars(kind).get("__init__")
        if inspect.isfunction(constructor):
            settings |= inspect.signature(constructor).parameters.keys()
    own = callback.state_dict()
    return {name: own[name] for name in restored.keys() & own.keys() & settings}


def _set_groups(
    optimizer: torch.optim.Optimizer, configured: torch.optim.Optimizer, but: Sequence[str] = ()
) -> None:
    """Give the parameter groups the settings of an optimiser just made from the config.

    but: settings that stay as they were restored.
    """
    groups = zip(optimizer.param_groups, configured.param_groups, strict=True)
    for group, wanted in groups:
        for name, value in wanted.items():
            if name != "params" and name not in but:
                group[name] = value


def _move_to_step(scheduler: LambdaLR, step: int) -> None:
    """Let a scheduler that was just made go on from a step, with the rates of its optimiser."""
    groups = scheduler.optimizer.param_groups
    rates = []
    for group, factor in zip(groups, scheduler.lr_lambdas, strict=True):
        group["initial_lr"] = group["lr"]
        group["lr"] = group["initial_lr"] * factor(step)
        rates.append(group["lr"])
    position = {
        "base_lrs": [group["initial_lr"] for group in groups],
        "last_epoch": step,
        "_step_count": step + 1,  # its first one is made when it is constructed
        "_last_lr": rates,
    }
    scheduler.load_state_dict({**scheduler.state_dict(), **position})


def _set_plateau(scheduler: ReduceLROnPlateau, schedule: PlateauSchedule) -> None:
    """Give a restored plateau its configured settings; its best value and its count stay."""
    scheduler.factor = schedule.factor
    scheduler.patience = schedule.patience
    scheduler.min_lrs = [schedule.minimum] * len(scheduler.min_lrs)


def _cycled_by(scheduler: Any) -> tuple[str, ...]:
    """What a scheduler of torch's changes in its optimiser beside the rate."""
    return _CYCLED if getattr(scheduler, "cycle_momentum", False) else ()
