"""Recurrent cells, and a stack of them.

A cell's step is written as its formula; all its steps at once are torch's own recurrences.

A step: the input's product W x + b (B, G) and the state (B, H) -> the state after. All steps: x (B,
T, I) and the state before -> (B, T, H). Both use the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from attnlab.model.dropout import Dropout
from attnlab.model.recurrence import ONE_LAYER, RecurrentState, StateShape, in_single_precision


class Cell(nn.RNNCellBase):
    """The two products of a step, and all steps at once."""

    def from_input(self, x: Tensor) -> Tensor:
        """W x + b: x (B, I) -> (B, G)."""
        return linear(x, self.weight_ih, self.bias_ih)

    def from_hidden(self, hidden: Tensor) -> Tensor:
        """U h + b': h (B, H) -> (B, G)."""
        return linear(hidden, self.weight_hh, self.bias_hh)

    def all_steps(self, x: Tensor, hidden: Tensor, cell: Tensor | None) -> Tensor:
        """x (B, T, I) and the state before -> the hidden states of T steps, (B, T, H)."""
        raise NotImplementedError


class RNNCell(Cell, nn.RNNCell):
    """h' = tanh(W x + b + U h + b')."""

    def forward(self, from_x: Tensor, hidden: Tensor) -> Tensor:  # type: ignore[override]
        return torch.tanh(from_x + self.from_hidden(hidden))

    def all_steps(self, x: Tensor, hidden: Tensor, cell: Tensor | None) -> Tensor:
        return torch.rnn_tanh(x, hidden.unsqueeze(0), _weights(self), *ONE_LAYER)[0]


class GRUCell(Cell, nn.GRUCell):
    """h' = (1 - z) n + z h, with n = tanh(W_n x + b_n + r (U_n h + b'_n)) and gates r and z.

    Cho et al. 2014, the reset gate behind the recurrent product.
    """

    def forward(self, from_x: Tensor, hidden: Tensor) -> Tensor:  # type: ignore[override]
        from_hidden = self.from_hidden(hidden)
        x_r, x_z, x_n = from_x.chunk(3, dim=1)
        hidden_r, hidden_z, hidden_n = from_hidden.chunk(3, dim=1)
        r, z = torch.sigmoid(x_r + hidden_r), torch.sigmoid(x_z + hidden_z)
        n = torch.tanh(x_n + r * hidden_n)
        return n + z * (hidden - n)

    def all_steps(self, x: Tensor, hidden: Tensor, cell: Tensor | None) -> Tensor:
        return torch.gru(x, hidden.unsqueeze(0), _weights(self), *ONE_LAYER)[0]


class LSTMCell(Cell, nn.LSTMCell):
    """c' = f c + i tanh(g), h' = o tanh(c').

    Hochreiter and Schmidhuber 1997, with forget gates.
    """

    def forward(  # type: ignore[override]
        self, from_x: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        hidden, cell = state
        gates = from_x + self.from_hidden(hidden)
        i, f, g, o = gates.chunk(4, dim=1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(cell), cell

    def all_steps(self, x: Tensor, hidden: Tensor, cell: Tensor | None) -> Tensor:
        assert cell is not None
        return torch.lstm(x, (hidden.unsqueeze(0), cell.unsqueeze(0)), _weights(self), *ONE_LAYER)[
            0
        ]


def _stack(layers: list[Tensor]) -> Tensor:
    return torch.stack(layers) if len(layers) > 1 else layers[0].unsqueeze(0)


def _weights(cell: nn.RNNCellBase) -> list[Tensor]:
    # cuDNN wants them side by side in memory. They are not, so on a GPU torch warns and copies them
    # at every call; it has no public function that lays a cell's weights out so.
    return [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]


_CELLS: dict[str, Callable[..., Cell]] = {
    "rnn": RNNCell,
    "gru": GRUCell,
    "lstm": LSTMCell,
}


class StackedCell(nn.Module):
    """tanh RNN, GRU or LSTM cells one above the other, with dropout between them."""

    def __init__(
        self, cell: str, input_size: int, hidden_size: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        sizes = [input_size] + [hidden_size] * (layers - 1)
        cells = [_CELLS[cell](size, hidden_size) for size in sizes]
        self.cells: Sequence[Cell] = nn.ModuleList(cells)  # type: ignore[assignment]
        self.dropout = Dropout(dropout)
        self.state_shape = StateShape(layers, hidden_size, has_cell=cell == "lstm")

    def forward(self, from_x: Tensor, state: RecurrentState) -> RecurrentState:
        """One step of all layers, from the first layer's W x + b (B, G) and the state before.

        The top hidden state of the state after is the output.
        """
        hiddens: list[Tensor] = []
        cell_states: list[Tensor] = []
        for layer, cell in enumerate(self.cells):
            if layer > 0:
                from_x = cell.from_input(self.dropout(hiddens[-1]))
            if state.cell is None:
                hiddens.append(cell(from_x, state.hidden[layer]))
            else:
                hidden, cell_state = cell(from_x, (state.hidden[layer], state.cell[layer]))
                hiddens.append(hidden)
                cell_states.append(cell_state)
        return RecurrentState(_stack(hiddens), _stack(cell_states) if cell_states else None)

    def product(self, x: Tensor) -> Tensor:
        """W x + b of the first layer: x (B, input) -> (B, G)."""
        return self.cells[0].from_input(x)

    def all_steps(self, x: Tensor, state: RecurrentState) -> Tensor:
        """x (B, T, input) and the state before -> the top hidden states of T steps, (B, T, H)."""
        for layer, cell in enumerate(self.cells):
            if layer > 0:
                x = self.dropout(x)
            cell_state = None if state.cell is None else state.cell[layer]
            x = in_single_precision(cell.all_steps, x, state.hidden[layer], cell_state)
        return x
