"""One step of a cell, and of a stack of them.

Elman 1990; Cho et al. 2014, with the reset gate behind the recurrent product, as in cuDNN;
Hochreiter and Schmidhuber 1997 with forget gates. Gates are stacked in PyTorch's order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Weights = Mapping[str, np.ndarray]


@dataclass
class State:
    hidden: list[np.ndarray]  # one (H,) a layer
    cell: list[np.ndarray] | None  # of an LSTM


def weights_of(module) -> dict[str, np.ndarray]:
    return {
        name: tensor.detach().double().numpy().copy()
        for name, tensor in module.state_dict().items()
    }


def part(w: Weights, prefix: str) -> dict[str, np.ndarray]:
    """The weights whose names start so, without it."""
    return {
        name.removeprefix(prefix): value for name, value in w.items() if name.startswith(prefix)
    }


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell_step(kind, w_ih, w_hh, b_ih, b_hh, x, h, c):
    """New hidden state, new cell state (None but for an LSTM)."""
    if kind == "rnn":
        return np.tanh(w_ih @ x + b_ih + w_hh @ h + b_hh), None
    if kind == "gru":
        x_r, x_z, x_n = np.split(w_ih @ x + b_ih, 3)
        h_r, h_z, h_n = np.split(w_hh @ h + b_hh, 3)
        r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
        return (1 - z) * np.tanh(x_n + r * h_n) + z * h, None
    i, f, g, o = np.split(w_ih @ x + b_ih + w_hh @ h + b_hh, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def matrices(w: Weights, suffix: str = "") -> list[np.ndarray]:
    return [w[name + suffix] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]


def stack_step(w: Weights, kind: str, x, before: State) -> State:
    """A step of a stack of cells, w holding `<layer>.weight_ih` and so on."""
    after = State([], [] if kind == "lstm" else None)
    for layer, h in enumerate(before.hidden):
        c = None if before.cell is None else before.cell[layer]
        x, c = cell_step(kind, *matrices(part(w, f"{layer}.")), x, h, c)
        after.hidden.append(x)
        if after.cell is not None:
            after.cell.append(c)
    return after
