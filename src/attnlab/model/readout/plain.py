"""No layer between the step and the output layer."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from attnlab.model.readout.readout import Readout


class PlainReadout(Readout):
    """[s_t; c_t; e(y_{t-1})], joined and handed on; without c_t where no context goes into the readout."""

    def __init__(
        self,
        dropout: Annotated[float, Field(ge=0, lt=1)],
        *,
        hidden_size: int,
        context_size: int,
        embedding_size: int,
    ) -> None:
        super().__init__()
        self.size = hidden_size + context_size + embedding_size
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        known = [hidden, token] if context is None else [hidden, context, token]
        return self.dropout(torch.cat(known, dim=-1))
