"""Encoders without a recurrence: one sentence, one token and one number at a time."""

from __future__ import annotations

import math

import numpy as np

from paper_equations.cells import State, Weights
from paper_equations.encoder import Encoded


def with_positions(w: Weights, tokens: list[int]) -> list[np.ndarray]:
    """Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", 3.1: e_j = w_j + p_j."""
    words, places = w["embedding.weight"], w["positions.vectors.weight"]
    return [words[token] + places[j] for j, token in enumerate(tokens)]


def convolved(weight: np.ndarray, bias: np.ndarray, x: list[np.ndarray]) -> list[np.ndarray]:
    """W (the vectors of k neighbours, one behind the other) + b; 0 stands beyond the ends."""
    _, size, kernel = weight.shape
    outside = [np.zeros(size)] * (kernel // 2)
    padded = [*outside, *x, *outside]
    return [
        sum(weight[:, :, offset] @ padded[j + offset] for offset in range(kernel)) + bias
        for j in range(len(x))
    ]


def gated(x: np.ndarray) -> np.ndarray:
    """Dauphin et al. 2016: glu([a; b]) = a ⊙ σ(b)."""
    a, b = np.split(x, 2)
    return a / (1 + np.exp(-b))


def convolutional(w: Weights, tokens: list[int], blocks: int) -> Encoded:
    """Gehring et al. 2017, as above, 3.1 to 3.4: what the decoder sums in equation 2."""
    e = with_positions(w, tokens)
    z = [w["W_in.weight"] @ each + w["W_in.bias"] for each in e]
    for block in range(blocks):
        weight, bias = (w[f"convolutions.{block}.{name}"] for name in ("weight", "bias"))
        found = convolved(weight, bias, z)
        z = [(gated(new) + old) * math.sqrt(0.5) for new, old in zip(found, z, strict=True)]
    last = [w["W_out.weight"] @ each + w["W_out.bias"] for each in z]
    return _with_mean([(x + y) * math.sqrt(0.5) for x, y in zip(last, e, strict=True)])


def averaging(w: Weights, tokens: list[int], window: int) -> Encoded:
    """Gehring et al. 2017, "A Convolutional Encoder Model for NMT", 3.1; 0 beyond the ends."""
    e = with_positions(w, tokens)
    reach = window // 2
    outputs = []
    for j in range(len(e)):
        inside = range(max(j - reach, 0), min(j + reach + 1, len(e)))
        outputs.append(sum(e[i] for i in inside) / window)
    return _with_mean(outputs)


def bag_of_words(w: Weights, tokens: list[int]) -> Encoded:
    """Iyyer et al. 2015, 2.1."""
    return _with_mean([w["embedding.weight"][token] for token in tokens])


def _with_mean(outputs: list[np.ndarray]) -> Encoded:
    """The final state is the mean of the outputs."""
    return Encoded(np.stack(outputs), State([sum(outputs) / len(outputs)], None), None)
