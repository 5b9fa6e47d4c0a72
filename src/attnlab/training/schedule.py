"""How the learning rate changes while training goes on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

Factor = Annotated[float, Field(gt=0, lt=1)]

# Lightning steps a scheduler by epochs or by steps, not by validations: the module steps a plateau itself, and
# Lightning, which keeps its state in the checkpoints, never does: its frequency is NEVER.
NEVER = 10**12


class Schedule(ABC):
    """Makes Lightning's learning-rate scheduler entry, or None where the rate stays."""

    @abstractmethod
    def __call__(self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str) -> Any:
        """The entry; `total_steps` is how long training may last, `monitor` and `mode` what a plateau looks at."""


@dataclass(frozen=True)
class ConstantSchedule(Schedule):
    """The rate stays as it is, after `warmup_steps` of linear growth."""

    warmup_steps: NonNegativeInt = 0

    def __call__(self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str) -> Any:
        return _by_step(optimizer, lambda step: _warmup(step, self.warmup_steps))


@dataclass(frozen=True)
class PlateauSchedule(Schedule):
    """The rate is multiplied by `factor` when `patience` validations brought nothing better."""

    factor: Factor
    patience: NonNegativeInt
    minimum: NonNegativeFloat = 0.0

    def __call__(self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str) -> Any:
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
    """Half a cosine wave from the full rate to nothing (Loshchilov and Hutter 2017), after a linear warm-up."""

    warmup_steps: NonNegativeInt = 0

    def __call__(self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str) -> Any:
        def factor(step: int) -> float:
            progress = max(0, step - self.warmup_steps) / max(1, total_steps - self.warmup_steps)
            return _warmup(step, self.warmup_steps) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))

        return _by_step(optimizer, factor)


@dataclass(frozen=True)
class HalvingSchedule(Schedule):
    """The rate is halved every `every_steps` once `start_step` is reached (Luong et al. 2015, section 4.1)."""

    start_step: NonNegativeInt
    every_steps: PositiveInt

    def __call__(self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str) -> Any:
        return _by_step(
            optimizer, lambda step: 0.5 ** max(0, math.ceil((step + 1 - self.start_step) / self.every_steps))
        )


def _warmup(step: int, warmup_steps: int) -> float:
    return min(1.0, (step + 1) / (warmup_steps + 1))


def _by_step(optimizer: torch.optim.Optimizer, factor: Any) -> dict[str, Any]:
    return {"scheduler": LambdaLR(optimizer, factor), "interval": "step"}
