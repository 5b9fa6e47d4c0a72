"""Bahdanau's deep output."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveInt
from torch import Tensor, nn

from attnlab.model.readout.readout import Readout


class MaxoutReadout(Readout):
    """t = maxout(U s_t + V e(y_{t-1}) + C c_t + b), each unit the larger of two sums (Goodfellow et al. 2013).

    The deep output of Bahdanau et al. 2015, appendix A.2.2. The appendix prints s_{t-1}; s_t is what equation 4 of
    the same paper gives to g.
    """

    def __init__(
        self,
        size: PositiveInt,
        dropout: Annotated[float, Field(ge=0, lt=1)],
        *,
        hidden_size: int,
        context_size: int,
        embedding_size: int,
    ) -> None:
        super().__init__()
        self.size = size
        self.U = nn.Linear(hidden_size, 2 * size)
        self.V = nn.Linear(embedding_size, 2 * size, bias=False)
        self.C = nn.Linear(context_size, 2 * size, bias=False) if context_size else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        sums = self.U(hidden) + self.V(token)
        if self.C is not None:
            sums = sums + self.C(context)
        return self.dropout(sums.unflatten(-1, (self.size, 2)).amax(-1))
