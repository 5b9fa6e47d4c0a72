"""The encoder: one sentence to one vector a token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paper_equations.cells import State, Weights, cell_step, matrices, part

MERGES = {
    "concatenate": lambda forward, backward: np.concatenate([forward, backward]),
    "sum": lambda forward, backward: forward + backward,
    "mean": lambda forward, backward: 0.5 * (forward + backward),
}


@dataclass
class Encoded:
    outputs: np.ndarray  # (S, D)
    final: State
    backward: State | None


def encode(
    w: Weights,
    kind: str,
    layers: int,
    bidirectional: bool,
    merge: str,
    reverse_source: bool,
    tokens: list[int],
) -> Encoded:
    """Bahdanau et al. 2015, 3.2.

    A reversed source (Sutskever et al. 2014, 3.3) is another sentence, whose outputs are turned
    back to where their tokens stand.
    """
    if reverse_source:
        turned = encode(w, kind, layers, bidirectional, merge, False, tokens[::-1])
        return Encoded(turned.outputs[::-1], turned.final, turned.backward)
    x = [w["embedding.weight"][token] for token in tokens]
    ends: list[tuple] = []
    backward_ends: list[tuple] = []
    for layer in range(layers):
        outputs, end = run(part(w, f"forward_layers.{layer}."), kind, x)
        if bidirectional:
            turned_outputs, backward_end = run(part(w, f"backward_layers.{layer}."), kind, x[::-1])
            backward_ends.append(backward_end)
            join = MERGES[merge]
            outputs = [
                join(ours, theirs)
                for ours, theirs in zip(outputs, turned_outputs[::-1], strict=True)
            ]
            end = tuple(
                None if ours is None else join(ours, theirs)
                for ours, theirs in zip(end, backward_end, strict=True)
            )
        ends.append(end)
        x = outputs
    return Encoded(
        np.stack(x), stacked(ends, kind), stacked(backward_ends, kind) if bidirectional else None
    )


def run(w: Weights, kind: str, inputs: list[np.ndarray]):
    """One direction of one layer from zero: all hidden states, and the last (hidden, cell)."""
    four = matrices(w, "_l0")
    h = c = np.zeros(four[1].shape[1])
    outputs = []
    for x in inputs:
        h, c = cell_step(kind, *four, x, h, c)
        outputs.append(h)
    return outputs, (h, c)


def stacked(ends: list[tuple], kind: str) -> State:
    return State([h for h, _ in ends], [c for _, c in ends] if kind == "lstm" else None)
