"""Recurrent cells: a step as its formula, all steps at once by torch's own recurrences, and a stack of cells.

A step: x (B, I) and the state (B, H) -> the state after. All steps: x (B, T, I) and the state before -> (B, T, H).
Both use the same weights; a step's matrix products are made for a loop (see `attnlab.model.fast_linear`).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnlab.model.fast_linear import repeated_linear
from attnlab.model.recurrence import RecurrentState, StateShape, in_single_precision

# One layer with biases, no dropout, in training, one direction, batch first; of torch's functions.
_ONE_LAYER = (True, 1, 0.0, True, False, True)


class RNNCell(nn.RNNCell):
    """h' = tanh(W x + b + U h + b')."""

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:  # type: ignore[override]
        return torch.tanh(
            repeated_linear(x, self.weight_ih, self.bias_ih) + repeated_linear(hidden, self.weight_hh, self.bias_hh)
        )

    def all_steps(self, x: Tensor, hidden: Tensor, cell: Tensor | None) -> Tensor:
        return torch.rnn_tanh(x, hidden.unsqueeze(0), _weights(self), *_ONE_LAYER)[0]


class GRUCell(nn.GRUCell):
    """h' = (1 - z) n + z h, with n = tanh(W_n x + b_n + r (U_n h + b'_n)) and the gates r and z (Cho et al. 2014,
    the reset gate behind the recurrent product)."""

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:  # type: ignore[override]
        from_x = repeated_linear(x, self.weight_ih, self.bias_ih)
        from_hidden = repeated_linear(hidden, self.weight_hh, self.bias_hh)
        x_r, x_z, x_n = from_x.chunk(3, dim=1)
        hidden_r, hidden_z, hidden_n = from_hidden.chunk(3, dim=1)
        r, z = torch.sigmoid(x_r + hidden_r), torch.sigmoid(x_z + hidden_z)
        n = torch.tanh(x_n + r * hidden_n)
        return n + z * (hidden - n)

    def all_steps(self, x: Tensor, hidden: Tensor, cell: Tensor | None) -> Tensor:
        return torch.gru(x, hidden.unsqueeze(0), _weights(self), *_ONE_LAYER)[0]


class LSTMCell(nn.LSTMCell):
    """c' = f c + i tanh(g), h' = o tanh(c') (Hochreiter and Schmidhuber 1997, with forget gates)."""

    def forward(  # type: ignore[override]
        self, x: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        hidden, cell = state
        gates = repeated_linear(x, self.weight_ih, self.bias_ih) + repeated_linear(hidden, self.weight_hh, self.bias_hh)
        i, f, g, o = gates.chunk(4, dim=1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(cell), cell

    def all_steps(self, x: Tensor, hidden: Tensor, cell: Tensor | None) -> Tensor:
        assert cell is not None
        return torch.lstm(x, (hidden.unsqueeze(0), cell.unsqueeze(0)), _weights(self), *_ONE_LAYER)[0]


def _weights(cell: nn.RNNCellBase) -> list[Tensor]:
    # cuDNN wants them side by side in memory. They are not, so on a GPU torch warns and copies them at every call; it
    # has no public function that lays a cell's weights out so.
    return [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]


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
