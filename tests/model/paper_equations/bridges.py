"""The decoder's first state.

Every bridge takes its weights, the encoded sentence, the shape of the decoder (layers, size) and
whether it is an LSTM.
"""

from __future__ import annotations

import numpy as np

from paper_equations.cells import State, Weights
from paper_equations.encoder import Encoded


def zero(w: Weights, encoded: Encoded, layers: int, size: int, has_cell: bool) -> State:
    return State([np.zeros(size)] * layers, [np.zeros(size)] * layers if has_cell else None)


def copy(w: Weights, encoded: Encoded, layers: int, size: int, has_cell: bool) -> State:
    """Sutskever et al. 2014: the decoder goes on where the encoder stopped."""
    return encoded.final


def linear(w: Weights, encoded: Encoded, layers: int, size: int, has_cell: bool) -> State:
    """tanh(W h + b), and W' c + b' for an LSTM's cell."""
    return _mapped(w, encoded.final, has_cell, w["hidden.bias"], w.get("cell.bias"))


def mean(w: Weights, encoded: Encoded, layers: int, size: int, has_cell: bool) -> State:
    """Sennrich et al. 2017: tanh(W mean(h) + b), a W for each decoder layer."""
    average = np.mean(encoded.outputs, axis=0)
    hidden = np.split(np.tanh(w["hidden.weight"] @ average + w["hidden.bias"]), layers)
    cell = np.split(w["cell.weight"] @ average + w["cell.bias"], layers) if has_cell else None
    return State(hidden, cell)


def first_backward(w: Weights, encoded: Encoded, layers: int, size: int, has_cell: bool) -> State:
    """Bahdanau et al. 2015, A.2.2: s_0 = tanh(W_s backward h_1)."""
    assert encoded.backward is not None
    return _mapped(w, encoded.backward, has_cell, 0.0, 0.0)


def _mapped(w: Weights, state: State, has_cell: bool, b, b_cell) -> State:
    hidden = [np.tanh(w["hidden.weight"] @ h + b) for h in state.hidden]
    if not has_cell:
        return State(hidden, None)
    memories = state.hidden if state.cell is None else state.cell
    return State(hidden, [w["cell.weight"] @ c + b_cell for c in memories])


BRIDGES = {
    "zero": zero,
    "copy": copy,
    "linear": linear,
    "mean": mean,
    "first_backward": first_backward,
}
