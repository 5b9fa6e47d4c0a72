"""A hidden layer over state, context and token."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from attnlab.model.readout.readout import Readout
from attnlab.model.repeated_linear import RepeatedLinear


class TanhReadout(Readout):
    """tanh(W [s_t; c_t; e(y_{t-1})] + b): the three things that Bahdanau's g reads (2015, equation 4), or two of
    them where no context goes into the readout."""

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
        self.projection = RepeatedLinear(hidden_size + context_size + embedding_size, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        known = [hidden, token] if context is None else [hidden, context, token]
        return self.dropout(torch.tanh(self.projection(torch.cat(known, dim=-1))))
