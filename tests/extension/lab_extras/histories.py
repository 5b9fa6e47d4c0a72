"""What an attention remembers from step to step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Centred(Remembered):
    """centre: of the window. positions: of the source tokens, which `weigh` is not given."""

    centre: Tensor  # (B,)
    positions: Tensor  # (B, S)


class MovingWindow(History[Centred]):
    """w_i ~ exp(-sharpness (i - c_t)^2), with c_t = c_{t-1} + exp(a q_t + b): it never goes back.

    Graves 2013, "Generating Sequences With Recurrent Neural Networks", equations 47 to 51, with one
    Gaussian, and weights whose sum is 1.
    """

    makes_weights: ClassVar[bool] = True

    def __init__(self, sharpness: Annotated[float, Field(gt=0)], *, query_size: int) -> None:
        super().__init__()
        self.sharpness = sharpness
        self.a = nn.Linear(query_size, 1)

    def first(self, memory: Memory) -> Centred:
        nothing = torch.zeros(memory.positions.shape, device=memory.positions.device)
        return Centred(weights=nothing, centre=nothing[:, 0] - 1, positions=memory.positions)

    def before(self, past: Centred, query: Tensor) -> Centred:
        return replace(past, centre=past.centre + self.a(query).squeeze(1).exp())

    def weigh(self, scores: Tensor, normalise: Callable[[Tensor], Tensor], past: Centred) -> Tensor:
        distance = past.positions - past.centre.unsqueeze(1)  # (B, S)
        window = -self.sharpness * distance.square()
        return window.masked_fill(scores == -torch.inf, -torch.inf).softmax(dim=1)

    def after(self, past: Centred, query: Tensor, context: Tensor, weights: Tensor) -> Centred:
        return replace(past, weights=weights)
