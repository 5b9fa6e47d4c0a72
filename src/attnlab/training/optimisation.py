"""Optimisers, and schedules of the learning rate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

Decay = Annotated[float, Field(ge=0, lt=1)]
Factor = Annotated[float, Field(gt=0, lt=1)]

# Lightning steps a scheduler by epochs or by steps, never by validations. So the module steps a
# plateau itself. Lightning saves its state in the checkpoints; at this frequency it never steps it.
NEVER = 10**12


class Optimizer(ABC):
    """Makes torch's optimiser for a model's parameters.

    learning_rate: before the schedule multiplies it.
    weight_decay: how much of each weight is taken off at a step, times the learning rate.
    """

    @abstractmethod
    def __call__(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer: ...


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019).

    beta1, beta2: the decay of the mean of the gradients, and of the mean of their squares.
    """

    learning_rate: PositiveFloat
    beta1: Decay = 0.9
    beta2: Decay = 0.999
    weight_decay: NonNegativeFloat = 0.0

    def __call__(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(
            parameters,
            lr=self.learning_rate,
            betas=(self.beta1, self.beta2),
            weight_decay=self.weight_decay,
            fused=True,
        )


@dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient descent, as in Sutskever et al. 2014 and Luong et al. 2015.

    momentum: the part of the last step that is added to the next.
    """

    learning_rate: PositiveFloat
    momentum: Decay = 0.0
    weight_decay: NonNegativeFloat = 0.0

    def __call__(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(
            parameters,
            lr=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )


@dataclass(frozen=True)
class Adadelta(Optimizer):
    """Adadelta (Zeiler 2012), as in Bahdanau et al. 2015, appendix B.2.

    rho: the decay of the means of squared gradients and steps.
    epsilon: added to both means.
    """

    learning_rate: PositiveFloat = 1.0
    rho: Decay = 0.95
    epsilon: PositiveFloat = 1e-6
    weight_decay: NonNegativeFloat = 0.0

    def __call__(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adadelta(
            parameters,
            lr=self.learning_rate,
            rho=self.rho,
            eps=self.epsilon,
            weight_decay=self.weight_decay,
        )


@dataclass(frozen=True)
class Adagrad(Optimizer):
    """Adagrad (Duchi et al. 2011), as in See et al. 2017, section 5.

    accumulator: where the sums of squared gradients start.
    """

    learning_rate: PositiveFloat = 0.15
    accumulator: NonNegativeFloat = 0.1
    weight_decay: NonNegativeFloat = 0.0

    def __call__(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adagrad(
            parameters,
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            initial_accumulator_value=self.accumulator,
        )


class Schedule(ABC):
    """Makes the learning-rate scheduler entry of Lightning's `configure_optimizers`.

    warmup_steps: in which the rate grows linearly to its full value.
    """

    @abstractmethod
    def __call__(
        self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str
    ) -> Any:
        """The scheduler entry.

        total_steps: the length of the training.
        monitor, mode: the metric of a plateau.
        """


@dataclass(frozen=True)
class ConstantSchedule(Schedule):
    """The rate is constant after `warmup_steps` of linear growth."""

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

    warmup_steps: NonNegativeInt = 0

    def __call__(
        self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str
    ) -> Any:
        def factor(step: int) -> float:
            progress = max(0, step - self.warmup_steps) / max(1, total_steps - self.warmup_steps)
            return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))

        return _by_step(optimizer, self.warmup_steps, factor)


@dataclass(frozen=True)
class HalvingSchedule(Schedule):
    """Halves the rate every `every_steps` from `start_step` on (Luong et al. 2015, section 4.1).

    start_step: of the first halving.
    every_steps: between two halvings.
    """

    start_step: NonNegativeInt
    every_steps: PositiveInt
    warmup_steps: NonNegativeInt = 0

    def __call__(
        self, optimizer: torch.optim.Optimizer, total_steps: int, monitor: str, mode: str
    ) -> Any:
        def factor(step: int) -> float:
            return 0.5 ** max(0, math.ceil((step + 1 - self.start_step) / self.every_steps))

        return _by_step(optimizer, self.warmup_steps, factor)


def _by_step(
    optimizer: torch.optim.Optimizer, warmup: int, factor: Callable[[int], float]
) -> dict[str, Any]:
    scheduler = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / (warmup + 1)) * factor(step))
    return {"scheduler": scheduler, "interval": "step"}
