"""Recurrent cells whose weights get their gradients after the pass."""

from __future__ import annotations

from torch import Tensor

from attnlab.model.decoders.cells import Cell, GRUCell, LSTMCell, RNNCell
from attnlab.model.fast.linear import fast_linear


class _FastCell(Cell):
    def from_input(self, x: Tensor) -> Tensor:
        return fast_linear(x, self.weight_ih, self.bias_ih)

    def from_hidden(self, hidden: Tensor) -> Tensor:
        return fast_linear(hidden, self.weight_hh, self.bias_hh)


class FastRNNCell(_FastCell, RNNCell):
    """A tanh RNN's cell."""


class FastGRUCell(_FastCell, GRUCell):
    """A GRU's cell."""


class FastLSTMCell(_FastCell, LSTMCell):
    """An LSTM's cell."""
