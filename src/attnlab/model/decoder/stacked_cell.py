"""One time step of a stack of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnlab.model.decoder.cells import GRUCell, LSTMCell, RNNCell
from attnlab.model.recurrent_state import RecurrentState, StateShape
from attnlab.model.single_precision import in_single_precision

_CELLS: dict[str, Callable[..., nn.RNNCellBase]] = {"rnn": RNNCell, "gru": GRUCell, "lstm": LSTMCell}


class StackedCell(nn.Module):
    """tanh RNN, GRU or LSTM cells one above the other, with dropout between them."""

    def __init__(self, cell: str, input_size: int, hidden_size: int, layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [input_size] + [hidden_size] * (layers - 1)
        self.cells = nn.ModuleList(_CELLS[cell](size, hidden_size) for size in sizes)
        self.dropout = nn.Dropout(dropout)
        self.state_shape = StateShape(layers, hidden_size, has_cell=cell == "lstm")

    def forward(self, x: Tensor, state: RecurrentState) -> RecurrentState:
        """x (B, input) and the state before -> the state after; its top hidden state is the output."""
        hiddens, memories = [], []
        for layer, cell in enumerate(self.cells):
            if layer > 0:
                x = self.dropout(x)
            if state.cell is None:
                x = cell(x, state.hidden[layer])
            else:
                x, memory = cell(x, (state.hidden[layer], state.cell[layer]))
                memories.append(memory)
            hiddens.append(x)
        return RecurrentState(torch.stack(hiddens), torch.stack(memories) if memories else None)

    def all_steps(self, x: Tensor, state: RecurrentState) -> Tensor:
        """x (B, T, input) and the state before -> the top hidden states of T steps, (B, T, H)."""
        for layer, cell in enumerate(self.cells):
            assert isinstance(cell, RNNCell | GRUCell | LSTMCell)
            if layer > 0:
                x = self.dropout(x)
            memory = None if state.cell is None else state.cell[layer]
            x = in_single_precision(cell.all_steps, x, state.hidden[layer], memory)
        return x
