"""What a head remembers from step to step, and what it makes of it, token by token.

A past is a mapping of what the papers' equations name: `weights` of the last step or their sum,
`u` of a transition agent. Of monotonic chunkwise attention, `weights` are where the last step
stopped and, once a step has chosen, where this one did; `energies` are those of the chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from paper_equations.cells import Weights, part
from paper_equations.scores import CONTENT_SCORES

Past = dict[str, Any]
SUM_OF_ALL = ("coverage",)
MONOTONIC = ("monotonic", "soft_monotonic")
IN_CHUNKS = ("mocha", "soft_mocha")
CHUNK_SIZE = 2  # of the tests' small models
FROM_THE_FIRST_TOKEN = ("forward", "forward_with_agent", *MONOTONIC, *IN_CHUNKS)


def first(kind: str, n: int) -> Past:
    weights = np.zeros(n)
    if kind in FROM_THE_FIRST_TOKEN:
        weights[0] = 1.0
    return {"weights": weights, "u": 0.5}


def added_to_key(kind: str, w: Weights, past: Past, i: int):
    """What the projected key of token i gets on top."""
    before = past.get("weights")
    if kind in ("coverage", "last_weights"):  # See et al. 2017, equation 11
        return w["w.weight"][:, 0] * before[i]
    if kind == "location_sensitive":  # Chorowski et al. 2015, equations 8 and 9
        filters = w["F"]
        reach = filters.shape[1] // 2
        f = np.zeros(len(filters))
        for place in range(-reach, reach + 1):
            if 0 <= i + place < len(before):
                f += filters[:, reach + place] * before[i + place]
        return w["U.weight"] @ f
    return 0.0


def chosen(kind: str, w: Weights, past: Past, scores, inside, query, values) -> Past:
    """The past with where this step stops, where that is not what its weights say."""
    if kind not in IN_CHUNKS:
        return past
    of_chunks = part(w, "chunk_score.")
    energies = [CONTENT_SCORES["bahdanau"](of_chunks, query, h, 0.0) for h in values]
    stops = read_on(kind, w, past, scores, inside)
    return {**past, "weights": stops, "energies": np.array(energies)}


def weights_of(
    kind: str, w: Weights, scores, normalise: Callable[[Any], Any], past: Past, inside
) -> np.ndarray:
    """The weights of all tokens; those outside of the window have none."""
    n = len(scores)
    plain = np.zeros(n)
    if kind in MONOTONIC:
        return read_on(kind, w, past, scores, inside)
    if kind in IN_CHUNKS:
        return in_chunks(past["weights"], past["energies"], inside)
    plain[inside] = normalise(scores[inside])
    if kind not in ("forward", "forward_with_agent"):
        return plain
    # Zhang et al. 2018, algorithms 1 and 2
    before, u = past["weights"], past["u"]
    moved = np.zeros(n)
    for i in range(n):
        moved[i] = (1 - u) * before[i] + (u * before[i - 1] if i > 0 else 0)
    total = (moved * plain).sum()
    return plain if total == 0 else moved * plain / total


def read_on(kind: str, w: Weights, past: Past, scores, inside) -> np.ndarray:
    """Where a step stops, or how likely it stops at each token."""
    p = 1 / (1 + np.exp(-(scores + w["r"])))
    p[~inside] = 0
    return expected(p, past) if kind.startswith("soft_") else stopped_at(p, past)


def in_chunks(stops, energies, inside) -> np.ndarray:
    """Chiu and Raffel 2018, section 2.3: the softmax over the tokens up to each stop."""
    n = len(stops)
    weights = np.zeros(n)
    for j in np.flatnonzero(inside):
        for k in range(j, min(j + CHUNK_SIZE, n)):
            chunk = [i for i in range(max(k - CHUNK_SIZE + 1, 0), k + 1) if inside[i]]
            weights[j] += stops[k] * np.exp(energies[j]) / np.exp(energies[chunk]).sum()
    return weights


def stopped_at(p, past: Past) -> np.ndarray:
    """Raffel et al. 2017, algorithm 1: read on from the last stop to the first p of a half."""
    n = len(p)
    weights = np.zeros(n)
    (stops,) = np.nonzero(past["weights"])
    if len(stops) == 0:  # an earlier step came to the end
        return weights
    for i in range(stops[0], n):
        if p[i] >= 0.5:
            weights[i] = 1
            return weights
    return weights


def expected(p, past: Past) -> np.ndarray:
    """Raffel et al. 2017, equation 9, as it stands there."""
    n = len(p)
    weights = np.zeros(n)
    for j in range(n):
        total = 0.0
        for k in range(j + 1):
            total += past["weights"][k] * np.prod([1 - p[i] for i in range(k, j)])
        weights[j] = p[j] * total
    return weights


def after(kind: str, w: Weights, past: Past, query, context, weights) -> Past:
    if kind in IN_CHUNKS:
        return past
    if kind in SUM_OF_ALL:
        return {**past, "weights": past["weights"] + weights}
    if kind == "forward_with_agent":
        hidden = np.tanh(w["W.weight"] @ np.concatenate([context, query]) + w["W.bias"])
        u = 1 / (1 + np.exp(-(w["v.weight"] @ hidden + w["v.bias"])))
        return {"weights": weights, "u": u[0]}
    return {**past, "weights": weights}
