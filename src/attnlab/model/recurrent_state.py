"""The state of a stack of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


@dataclass(frozen=True)
class StateShape:
    """How many layers, how wide, and whether there is a cell state beside the hidden state (LSTM)."""

    layers: int
    size: int
    has_cell: bool


@dataclass(frozen=True)
class RecurrentState:
    """Hidden state and, for an LSTM, cell state of every layer; the last layer is the top one."""

    hidden: Tensor  # (L, B, H)
    cell: Tensor | None = None  # (L, B, H)

    def select(self, rows: Tensor) -> RecurrentState:
        """The state of some rows of the batch, in their order, repeated where a row is named twice."""
        return RecurrentState(self.hidden[:, rows], None if self.cell is None else self.cell[:, rows])
