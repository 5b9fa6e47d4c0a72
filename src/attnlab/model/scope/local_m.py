"""A window that moves with the target."""

from __future__ import annotations

from pydantic import PositiveInt
from torch import Tensor

from attnlab.model.scope.scope import Scope, Window


class LocalM(Scope):
    """Source tokens within [p_t - D, p_t + D], with p_t = t (Luong et al. 2015, section 3.2, "local-m").

    The target may be longer than the source: p_t then stays at the last real token.

    Args:
        width: D, tokens on each side of the centre.
    """

    def __init__(self, width: PositiveInt, *, query_size: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, query: Tensor, t: Tensor, positions: Tensor, lengths: Tensor) -> Window:
        centre = t.minimum(lengths.unsqueeze(1) - 1).unsqueeze(2)  # (B, T, 1)
        return Window(inside=(positions.unsqueeze(1) - centre).abs() <= self.width)
