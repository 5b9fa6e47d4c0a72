"""The state alone."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from attnlab.model.readout.readout import Readout


class StateReadout(Readout):
    """s_t as it is: the output layer knows context and token by the state alone (Sutskever et al. 2014, section 2)."""

    def __init__(
        self,
        dropout: Annotated[float, Field(ge=0, lt=1)],
        *,
        hidden_size: int,
        context_size: int,
        embedding_size: int,
    ) -> None:
        super().__init__()
        if context_size > 0:
            raise ValueError(
                "the state readout reads no context, but this decoder hands it one; choose a model.decoder.context "
                "that goes into the cell alone, or model/readout=tanh"
            )
        self.size = hidden_size
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        return self.dropout(hidden)
