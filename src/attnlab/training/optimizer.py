"""The optimisers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import nn

Decay = Annotated[float, Field(ge=0, lt=1)]


class Optimizer(ABC):
    """Makes torch's optimiser for a model's parameters."""

    learning_rate: float

    @abstractmethod
    def __call__(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer: ...


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma and Ba 2015); weight decay is decoupled from the gradient (Loshchilov and Hutter 2019)."""

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
    """Stochastic gradient descent, as in Sutskever et al. 2014 and Luong et al. 2015."""

    learning_rate: PositiveFloat
    momentum: Decay = 0.0
    weight_decay: NonNegativeFloat = 0.0

    def __call__(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(
            parameters, lr=self.learning_rate, momentum=self.momentum, weight_decay=self.weight_decay
        )


@dataclass(frozen=True)
class Adadelta(Optimizer):
    """Adadelta (Zeiler 2012), as in Bahdanau et al. 2015, appendix B.2."""

    learning_rate: PositiveFloat = 1.0
    rho: Decay = 0.95
    epsilon: PositiveFloat = 1e-6
    weight_decay: NonNegativeFloat = 0.0

    def __call__(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adadelta(
            parameters, lr=self.learning_rate, rho=self.rho, eps=self.epsilon, weight_decay=self.weight_decay
        )
