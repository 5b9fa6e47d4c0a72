"""Luong's attentional hidden state."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from attnlab.model.readout.readout import Readout
from attnlab.model.repeated_linear import RepeatedLinear


class AttentionalReadout(Readout):
    """attentional_hidden_t = tanh(W_c [c_t; s_t] + b) (Luong et al. 2015, equation 5, there without b)."""

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
        if context_size == 0:
            raise ValueError(
                "the attentional hidden state is made of a context and a state, but this decoder hands its readout no "
                "context; choose a model.decoder.context that goes into the readout, or model/readout=tanh"
            )
        self.size = size
        self.projection = RepeatedLinear(context_size + hidden_size, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        assert context is not None
        return self.dropout(torch.tanh(self.projection(torch.cat([context, hidden], dim=-1))))
