"""The last weights as a feature of the keys."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from attnlab.model.attention.memory import Memory
from attnlab.model.histories.history import History, Remembered
from attnlab.model.histories.starts import no_weights


class LastWeights(History[Remembered]):
    """projected keys + w weights_{t-1}: each token knows how much the last step saw of it.

    A location-sensitive attention (Chorowski et al. 2015, section 2.2) with one filter of width 1.
    Before the first step all weights are 0.
    """

    changes_keys: ClassVar[bool] = True

    def __init__(self, *, key_size: int) -> None:
        super().__init__()
        self.w = nn.Linear(1, key_size, bias=False)

    def first(self, memory: Memory) -> Remembered:
        return Remembered(no_weights(memory))

    def change_keys(self, keys: Tensor, past: Remembered) -> Tensor:
        return keys + self.w(past.weights.unsqueeze(2).to(keys.dtype))

    def after(
        self, past: Remembered, query: Tensor, context: Tensor, weights: Tensor
    ) -> Remembered:
        return Remembered(weights)
