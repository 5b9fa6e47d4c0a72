"""The models' equations in NumPy and float64, written from the papers, one sentence and one step at a time.

No batch, no mask, no padding: what a padded batch gives must equal this. Weights come by the names of a
`state_dict`. Cells follow Elman 1990, Cho et al. 2014 (with the reset gate behind the recurrent product, as in
cuDNN) and Hochreiter and Schmidhuber 1997 with forget gates; gates are stacked in PyTorch's order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Weights = Mapping[str, np.ndarray]


@dataclass
class State:
    hidden: list[np.ndarray]  # one (H,) a layer
    cell: list[np.ndarray] | None


def weights_of(module) -> dict[str, np.ndarray]:
    return {name: tensor.detach().double().numpy().copy() for name, tensor in module.state_dict().items()}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def cell_step(kind, w_ih, w_hh, b_ih, b_hh, x, h, c):
    """One step of a cell: new hidden state, new cell state (None but for an LSTM)."""
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


def encode(w: Weights, kind: str, layers: int, bidirectional: bool, tokens: list[int]) -> tuple[np.ndarray, State]:
    """Encoder outputs (S, D) and the final state of one sentence; w holds `embedding.` and `recurrence.`."""
    inputs = [w["embedding.weight"][token] for token in tokens]
    final = State([], [] if kind == "lstm" else None)
    for layer in range(layers):
        sides, hidden_ends, cell_ends = [], [], []
        for suffix in ("", "_reverse") if bidirectional else ("",):
            names = (f"recurrence.{name}_l{layer}{suffix}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
            matrices = [w[name] for name in names]
            h = c = np.zeros(matrices[1].shape[1])
            outputs = []
            for x in reversed(inputs) if suffix else inputs:
                h, c = cell_step(kind, *matrices, x, h, c)
                outputs.append(h)
            sides.append(outputs[::-1] if suffix else outputs)
            hidden_ends.append(h)
            cell_ends.append(c)
        inputs = [np.concatenate(at_one_token) for at_one_token in zip(*sides, strict=True)]
        final.hidden.append(np.concatenate(hidden_ends))
        if final.cell is not None:
            final.cell.append(np.concatenate(cell_ends))
    return np.stack(inputs), final


def linear_bridge(w: Weights, final: State) -> State:
    hidden = [np.tanh(w["hidden.weight"] @ h + w["hidden.bias"]) for h in final.hidden]
    if "cell.weight" not in w:
        return State(hidden, None)
    source = final.hidden if final.cell is None else final.cell
    return State(hidden, [w["cell.weight"] @ c + w["cell.bias"] for c in source])


def dot(w: Weights, s, h):
    """Luong et al. 2015: s' h."""
    return s @ h


def general(w: Weights, s, h):
    """Luong et al. 2015: s' W h."""
    return s @ w["W.weight"] @ h


def bahdanau(w: Weights, s, h):
    """Bahdanau et al. 2015, A.1.2: v' tanh(W s + U h)."""
    return w["v"] @ np.tanh(w["W.weight"] @ s + w["U.weight"] @ h)


SCORES = {"dot": dot, "general": general, "bahdanau": bahdanau}


def attend(score, w: Weights, s, values):
    """c = sum_j softmax(score(s, h_j)) h_j over the real tokens: context (D,), weights (S,)."""
    weights = softmax(np.array([score(w, s, h) for h in values]))
    return weights @ values, weights


def part(w: Weights, prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): value for name, value in w.items() if name.startswith(prefix)}


def stack_step(w: Weights, kind: str, x, state: State) -> State:
    """A step of the decoder's stack of cells; w holds `cell.cells.<layer>.`"""
    after = State([], [] if kind == "lstm" else None)
    for layer, h in enumerate(state.hidden):
        matrices = [w[f"cell.cells.{layer}.{name}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        x, c = cell_step(kind, *matrices, x, h, None if state.cell is None else state.cell[layer])
        after.hidden.append(x)
        if after.cell is not None:
            after.cell.append(c)
    return after


def readout(w: Weights, *features):
    return np.tanh(w["readout.projection.weight"] @ np.concatenate(features) + w["readout.projection.bias"])


def attend_then_step(w: Weights, kind: str, score, token: int, state: State, values, summary):
    """Bahdanau et al. 2015, 3.1: c_t from s_{t-1}; s_t = f(s_{t-1}, [y_{t-1}, c_t]); g reads s_t, c_t, y_{t-1}."""
    y = w["embedding.weight"][token]
    c, weights = attend(score, part(w, "attention.score."), state.hidden[-1], values)
    state = stack_step(w, kind, np.concatenate([y, c]), state)
    return readout(w, state.hidden[-1], c, y), state, weights


def step_then_attend(w: Weights, kind: str, score, token: int, state: State, values, summary):
    """Luong et al. 2015, 3: s_t = f(s_{t-1}, y_{t-1}); c_t from s_t; tanh(Wc [c_t; s_t]), equation 5."""
    state = stack_step(w, kind, w["embedding.weight"][token], state)
    c, weights = attend(score, part(w, "attention.score."), state.hidden[-1], values)
    return readout(w, c, state.hidden[-1]), state, weights


def initial_state_only(w: Weights, kind: str, score, token: int, state: State, values, summary):
    """Sutskever et al. 2014: the source is in the first state alone."""
    y = w["embedding.weight"][token]
    state = stack_step(w, kind, y, state)
    return readout(w, state.hidden[-1], y), state, None


def context_at_every_step(w: Weights, kind: str, score, token: int, state: State, values, summary):
    """Cho et al. 2014: s_t = f(s_{t-1}, y_{t-1}, c), and the output reads s_t, y_{t-1} and c."""
    y = w["embedding.weight"][token]
    state = stack_step(w, kind, np.concatenate([y, summary]), state)
    return readout(w, state.hidden[-1], y, summary), state, None


DECODERS = {
    ("attend_then_step", "initial_state"): attend_then_step,
    ("step_then_attend", "initial_state"): step_then_attend,
    ("no_attention", "initial_state"): initial_state_only,
    ("no_attention", "every_step"): context_at_every_step,
}


def log_softmax(x):
    x = x - x.max()
    return x - np.log(np.exp(x).sum())
