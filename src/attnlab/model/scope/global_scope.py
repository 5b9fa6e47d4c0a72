"""The whole source."""

from __future__ import annotations

from torch import Tensor

from attnlab.model.scope.scope import Scope, Window


class GlobalScope(Scope):
    """Every source token may be seen at every step (Luong et al. 2015, section 3.1)."""

    def __init__(self, *, query_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, t: Tensor, positions: Tensor, lengths: Tensor) -> Window:
        return Window()
