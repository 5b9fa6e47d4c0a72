"""What an attention remembers from step to step."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from attnlab.model.attention.memory import Memory
from attnlab.model.histories.history import History, Remembered


class FadingCoverage(History[Remembered]):
    """projected keys + w c_t, with c_t = g c_{t-1} + weights_{t-1}: coverage that fades.

    Args:
        memory: g, how much of it is left a step later.
    """

    changes_keys: ClassVar[bool] = True

    def __init__(self, memory: Annotated[float, Field(ge=0, le=1)], *, key_size: int) -> None:
        super().__init__()
        self.memory = memory
        self.w = nn.Linear(1, key_size, bias=False)

    def first(self, memory: Memory) -> Remembered:
        return Remembered(torch.zeros(memory.positions.shape, device=memory.positions.device))

    def change_keys(self, keys: Tensor, past: Remembered) -> Tensor:
        return keys + self.w(past.weights.unsqueeze(2).to(keys.dtype))

    def after(
        self, past: Remembered, query: Tensor, context: Tensor, weights: Tensor
    ) -> Remembered:
        return Remembered(self.memory * past.weights + weights)
