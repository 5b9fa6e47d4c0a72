"""Location-sensitive attention: filters over the last weights."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.model.attention.memory import Memory
from attnlab.model.histories.history import History, Remembered
from attnlab.model.histories.starts import no_weights


class LocationSensitive(History[Remembered]):
    """projected keys + U f_t, with f_t = F * weights_{t-1}.

    Chorowski et al. 2015, equations 8 and 9: k filters of width r slide over the last weights, so
    that each token knows where the last step looked around it. The additive score so becomes v ·
    tanh(W s + V h_i + U f_i + b). Before the first step all weights are 0.

    Args:
        filters: their number k.
        filter_width: r, in tokens; odd, so that a filter has a middle.

    Raises ValueError for an even width.
    """

    changes_keys: ClassVar[bool] = True

    def __init__(self, filters: PositiveInt, filter_width: PositiveInt, *, key_size: int) -> None:
        super().__init__()
        if filter_width % 2 == 0:
            raise ValueError(
                "filter_width must be odd, so that a filter has as many tokens on both sides of "
                f"its middle, got {filter_width}; choose {filter_width - 1} or {filter_width + 1}"
            )
        self.filter_width = filter_width
        self.F = nn.Parameter(
            torch.empty(filters, filter_width).uniform_(-1, 1) / math.sqrt(filter_width)
        )
        self.U = nn.Linear(filters, key_size, bias=False)

    def first(self, memory: Memory) -> Remembered:
        return Remembered(no_weights(memory))

    def change_keys(self, keys: Tensor, past: Remembered) -> Tensor:
        found = self.locations(past.weights.to(keys.dtype))
        # Not by the layer itself: a fast pass would collect its gradients, (B, S, A) at every step,
        # until its end.
        return keys + nn.functional.linear(found, self.U.weight)

    def locations(self, weights: Tensor) -> Tensor:
        """f_t: weights (B, S) -> (B, S, k), f_i = F weights_{i - r // 2 ... i + r // 2}."""
        padded = nn.functional.pad(weights, (self.filter_width // 2, self.filter_width // 2))
        around = padded.unfold(1, self.filter_width, 1)  # (B, S, r)
        return nn.functional.linear(around, self.F)

    def after(
        self, past: Remembered, query: Tensor, context: Tensor, weights: Tensor
    ) -> Remembered:
        return Remembered(weights)
