"""Schedules of the learning rate. Optimisers are torch's own (see torch_optim.py)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau

from attnlab.config.part import Part
from attnlab.training.torch_optim import scheduler_entry

Factor = Annotated[float, Field(gt=0, lt=1)]

# Lightning steps a scheduler by epochs or by steps, never by validations. So the module steps a
# plateau itself. Lightning saves its state in the checkpoints; at this frequency it never steps it.
NEVER = 10**12


class Schedule(ABC):
    """Makes the learning-rate scheduler entry of Lightning's `configure_optimizers`.

    warmup_steps: in which the rate grows linearly to its full value.

    follows_step: whether the scheduler is a `LambdaLR`, whose rate depends on the step alone. A
        training that goes on from another one may then have another schedule, or another rate.
    """

    follows_step: ClassVar[bool] = False

    @abstractmethod
    def __call__(
        self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str
    ) -> Any:
        """The scheduler entry.

        total_steps: the length of the training.
        monitor, mode: the metric of a plateau.
        """


def follows_step(schedule: object) -> bool:
    """Whether the rate depends on the step alone; of torch's own schedulers nobody knows."""
    return isinstance(schedule, Schedule) and schedule.follows_step


@dataclass(frozen=True)
class ConstantSchedule(Schedule):
    """The rate is constant after `warmup_steps` of linear growth."""

    follows_step: ClassVar[bool] = True

    warmup_steps: NonNegativeInt = 0

    def __call__(
        self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str
    ) -> Any:
        return _by_step(optimizer, self.warmup_steps, lambda step: 1.0)


@dataclass(frozen=True)
class PlateauSchedule(Schedule):
    """Multiplies the rate by `factor` after more than `patience` validations without improvement.

    factor: of the rate.
    patience: in validations.
    minimum: of the rate.
    """

    factor: Factor
    patience: NonNegativeInt
    minimum: NonNegativeFloat = 0.0

    def __call__(
        self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str
    ) -> Any:
        scheduler = ReduceLROnPlateau(
            optimizer,
            mode="min" if mode == "min" else "max",
            factor=self.factor,
            patience=self.patience,
            min_lr=self.minimum,
        )
        return {"scheduler": scheduler, "monitor": monitor, "interval": "step", "frequency": NEVER}


@dataclass(frozen=True)
class CosineSchedule(Schedule):
    """Half a cosine wave from the full rate to zero (Loshchilov and Hutter 2017), after warm-up.

    The warm-up is linear.
    """

    follows_step: ClassVar[bool] = True

    warmup_steps: NonNegativeInt = 0

    def __call__(
        self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str
    ) -> Any:
        def factor(step: int) -> float:
            steps_behind = max(0, step - self.warmup_steps)
            all_steps = max(1, total_steps - self.warmup_steps)
            progress = steps_behind / all_steps
            return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))

        return _by_step(optimizer, self.warmup_steps, factor)


@dataclass(frozen=True)
class InverseSquareRootSchedule(Schedule):
    """Falls with the square root of the steps, after warm-up (Vaswani et al. 2017, equation 3).

    The first step after the warm-up has the optimizer's rate, the highest. In the paper it is the
    last of the warm-up, and has the rate 1 / sqrt(d_model (warmup_steps + 1)).
    """

    follows_step: ClassVar[bool] = True

    warmup_steps: PositiveInt

    def __call__(
        self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str
    ) -> Any:
        def factor(step: int) -> float:
            first_after = self.warmup_steps + 1  # steps are counted from 1 on
            return math.sqrt(first_after / max(first_after, step + 1))

        return _by_step(optimizer, self.warmup_steps, factor)


@dataclass(frozen=True)
class HalvingSchedule(Schedule):
    """Halves the rate every `every_steps` from `start_step` on (Luong et al. 2015, section 4.1).

    start_step: of the first halving.
    every_steps: between two halvings.
    """

    follows_step: ClassVar[bool] = True

    start_step: NonNegativeInt
    every_steps: PositiveInt
    warmup_steps: NonNegativeInt = 0

    def __call__(
        self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str
    ) -> Any:
        def factor(step: int) -> float:
            halvings = math.ceil((step + 1 - self.start_step) / self.every_steps)
            return 0.5 ** max(0, halvings)

        return _by_step(optimizer, self.warmup_steps, factor)


def _by_step(
    optimizer: torch.optim.Optimizer, warmup: int, factor: Callable[[int], float]
) -> dict[str, Any]:
    """The scheduler entry of a factor of the rate at each step, after a linear warm-up."""

    def warmed_up(step: int) -> float:
        return min(1.0, (step + 1) / (warmup + 1)) * factor(step)

    return {"scheduler": LambdaLR(optimizer, warmed_up), "interval": "step"}


def make_scheduler(
    schedule: Schedule | Part[LRScheduler],
    optimizer: torch.optim.Optimizer,
    total_steps: int,
    monitor: str,
    mode: str,
) -> Any:
    """The scheduler entry of Lightning's `configure_optimizers`, of our schedules and torch's."""
    if isinstance(schedule, Schedule):
        return schedule(optimizer, total_steps, monitor, mode)
    return scheduler_entry(schedule(optimizer), schedule.path, total_steps)
