"""From scores (S,) to weights (S,); w holds what a normaliser learns, by its names."""

from __future__ import annotations

import numpy as np
from composed_variants import SMALL


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def sparsemax(z):
    """Martins and Astudillo 2016: max(0, z - tau) with sum 1.

    tau is found by halving, not by their sorting.
    """
    below, above = z.max() - 1, z.max()  # the sum is at least 1 at the one, and 0 at the other
    for _ in range(200):
        tau = (below + above) / 2
        if np.maximum(0, z - tau).sum() > 1:
            below = tau
        else:
            above = tau
    return np.maximum(0, z - tau)


def log_softmax(z):
    z = z - z.max()
    return z - np.log(np.exp(z).sum())


def entmax(z, alpha):
    """Peters, Niculae and Martins 2019: [(alpha - 1) z - tau]_+^(1 / (alpha - 1)) with sum 1.

    tau is found by halving.
    """
    x = (alpha - 1) * z
    below, above = x.max() - 1, x.max()
    for _ in range(200):
        tau = (below + above) / 2
        if (np.maximum(0, x - tau) ** (1 / (alpha - 1))).sum() > 1:
            below = tau
        else:
            above = tau
    return np.maximum(0, x - tau) ** (1 / (alpha - 1))


def sigmoid(z, b):
    """Ramapuram et al. 2024, their offset -log n and one that is learned."""
    return 1 / (1 + len(z) * np.exp(-z - b))


def with_sink(z, b):
    """Miller 2023: the sink is one more term of the sum."""
    return np.exp(z) / (np.exp(b) + np.exp(z).sum())


def around_best(z, reach):
    best = int(np.argmax(z))
    powers = [np.exp(z[i] - z[best]) if abs(i - best) <= reach else 0.0 for i in range(len(z))]
    return np.array(powers) / sum(powers)


def top_k(z, k):
    """Gupta et al. 2021: the others are not there. Equal scores stay or go together."""
    weights = np.zeros(len(z))
    kept = z >= sorted(z)[-min(k, len(z))]
    weights[kept] = softmax(z[kept])
    return weights


def hard(z):
    weights = np.zeros(len(z))
    weights[list(z).index(max(z))] = 1
    return weights


NORMALISERS = {
    "softmax": lambda z, w: softmax(z),
    "sparsemax": lambda z, w: sparsemax(z),
    "entmax": lambda z, w: entmax(z, 1.5),
    "adaptive_entmax": lambda z, w: entmax(z, 1 + 1 / (1 + np.exp(-w["a"]))),
    "sigmoid": lambda z, w: sigmoid(z, w["b"]),
    "softmax1": lambda z, w: with_sink(z, 0.0),
    "softmax_with_sink": lambda z, w: with_sink(z, w["b"]),
    "learned_temperature": lambda z, w: softmax(z / np.exp(w["a"])),
    "top_k": lambda z, w: top_k(z, SMALL["k"]),
    "around_best": lambda z, w: around_best(z, SMALL["reach"]),
    "hard": lambda z, w: hard(z),
    "none": lambda z, w: z,
    "reinforce": lambda z, w: hard(z),
    "gumbel": lambda z, w: hard(z),  # as searches and validations see it
}
