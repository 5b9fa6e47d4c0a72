"""Recurrent layers: their kinds, their states, and single precision on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
# One layer with biases, no dropout, in training, one direction, batch first; of torch's functions.
ONE_LAYER = (True, 1, 0.0, True, False, True)


@dataclass(frozen=True)
class StateShape:
    """Layers and width of a state, and whether it has a cell beside the hidden state (LSTM)."""

    layers: int
    size: int
    has_cell: bool


@dataclass(frozen=True)
class RecurrentState:
    """Hidden state and, for an LSTM, cell state of every layer; the last layer is the top one."""

    hidden: Tensor  # (L, B, H)
    cell: Tensor | None = None  # (L, B, H)

    def select(self, rows: Tensor) -> RecurrentState:
        """The state of some rows of the batch, in their order; a row may be named twice."""
        return RecurrentState(
            self.hidden[:, rows], None if self.cell is None else self.cell[:, rows]
        )


ResultT = TypeVar("ResultT")

# Whatever type autocast was asked for, torch casts what cuDNN's recurrences read to float16 (ATen,
# AutocastRNN.cpp). Gradients in float16 need a scaler, and bfloat16 training has none.
HALVES_RECURRENCES = ("cuda",)


def in_single_precision(
    recurrence: Callable[..., ResultT], x: Tensor, *more: Tensor | None
) -> ResultT:
    """recurrence(x, *more), in float32 where autocast on a GPU would halve it.

    It then runs outside of autocast, with inputs in float32.
    """
    kind = x.device.type
    if kind not in HALVES_RECURRENCES or not torch.is_autocast_enabled(kind):
        return recurrence(x, *more)
    with torch.autocast(kind, enabled=False):
        return recurrence(
            _widened(x), *(None if tensor is None else _widened(tensor) for tensor in more)
        )


def _widened(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
