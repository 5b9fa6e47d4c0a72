"""torch's recurrent cells: a step as its formula, its matrix products made for a loop (see
`attnlab.model.repeated_linear`), and all steps at once, by torch's own recurrences over the same weights.

A step: x (B, I) and the state (B, H) -> the state after. All steps: x (B, T, I) and the state before -> (B, T, H).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.repeated_linear import repeated_linear

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
