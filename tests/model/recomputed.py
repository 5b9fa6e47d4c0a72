"""The operations of tasks/symbols, written a second time as sums over indices.

Axes by letter: k is summed over, s counts source tokens, a and b count what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any


def linear(W: Array, x: Array, b: Array = 0.0) -> Array:
    return np.einsum("ak,...k->...a", W, x) + b


def dot(q: Array, K: Array) -> Array:
    return np.einsum("k,...k->...", q, K)


def unit(x: Array) -> Array:
    """The vector of a pad that no recurrence reads is 0, and stays so."""
    length = np.sqrt((x * x).sum(-1, keepdims=True))
    return np.divide(x, length, out=np.zeros_like(x), where=length > 0)


def log_kernel(q: Array, K: Array) -> Array:
    """By the logarithm of each feature: x below 0, log(1 + x) above."""
    log_phi = lambda x: np.where(x < 0, x, np.log1p(np.clip(x, 0, None)))  # noqa: E731
    return np.logaddexp.reduce(log_phi(K) + log_phi(q), axis=-1)


def delta_rule(K: Array, H: Array, w: Array, written: list[bool]) -> Array:
    """As the inverse of a matrix."""
    beta = np.diag(logistic(H @ w) * np.array(written))
    return np.linalg.inv(np.eye(len(K)) + beta @ np.triu(K @ K.T, 1)) @ beta @ K


def logistic(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(x / 2))


def softmax(x: Array) -> Array:
    powers = np.array([math.exp(each - np.max(x)) for each in x])
    return powers / math.fsum(powers)


def sparsemax(x: Array) -> Array:
    """By bisection of tau."""
    low, high = np.max(x) - 1, np.max(x)
    for _ in range(100):
        tau = (low + high) / 2
        if np.clip(x - tau, 0, None).sum() > 1:
            low = tau
        else:
            high = tau
    return np.clip(x - low, 0, None)


def entmax(x: Array, alpha: float) -> Array:
    """By Newton's method on the threshold, from below."""
    scaled, power = (alpha - 1) * x, 1 / (alpha - 1)
    tau = scaled.max() - 1
    for _ in range(100):
        left = np.clip(scaled - tau, 0, None)
        steepness = power * (left[left > 0] ** (power - 1)).sum()
        tau = tau + ((left**power).sum() - 1) / steepness
    return np.clip(scaled - tau, 0, None) ** power


def sigmoid_weights(x: Array, b: Array) -> Array:
    seen = sum(1 for each in x if each > -math.inf)
    return 1 / (1 + seen * np.exp(-x - b))


def top_k(x: Array, k: int) -> Array:
    """Tokens without a rank among the first k have no term in the sum."""
    powers = np.exp(x - x.max())
    rank = np.array([(x > each).sum() for each in x])
    return np.where(rank < k, powers, 0) / powers[rank < k].sum()


def around(x: Array, width: int) -> Array:
    reach = range(-(width // 2), width // 2 + 1)
    inside = [[x[i + k] if 0 <= i + k < len(x) else 0.0 for k in reach] for i in range(len(x))]
    return np.array(inside)


def copied(*weights: Array, tokens: list[int], size: int) -> Array:
    found = np.zeros(size)
    for token in range(size):
        places = [i for i, each in enumerate(tokens) if each == token]
        found[token] = math.fsum(w[i] for w in weights for i in places) / len(weights)
    return found


def first_chosen(energy: Array, before: Array) -> Array:
    found = np.zeros(len(energy))
    passed = 0.0
    for i, each in enumerate(energy):
        passed += before[i]
        if passed > 0 and passed >= sum(before) / 2 and each >= 0:
            found[i] = 1.0
            return found
    return found


def mean_choice(energy: Array, before: Array) -> Array:
    """As a sum over all places where the last step may have stopped."""
    p = logistic(energy)
    found = np.zeros(len(p))
    for i in range(len(p)):
        for k in range(i + 1):
            found[i] += p[i] * before[k] * math.prod(1 - each for each in p[k:i])
    return found


def chunk_softmax(stops: Array, energies: Array, size: int) -> Array:
    """As the paper's sum over the ends of the chunks that a token is in."""
    powers = [math.exp(each) for each in energies]
    found = np.zeros(len(powers))
    for i, own in enumerate(powers):
        for end in range(i, min(i + size, len(powers))):
            if own > 0:
                found[i] += stops[end] * own / math.fsum(powers[max(end - size + 1, 0) : end + 1])
    return found


def gate(one: Array, other: Array, start: int, size: int, function: str) -> Array:
    total = (one + other)[start : start + size]
    return {"sigmoid": logistic, "tanh": np.tanh}[function](total)


RECOMPUTED: dict[str, Callable[..., Array]] = {
    "lookup": lambda E, index: E[index],
    "columns": lambda W, start, stop: W.T[start:stop].T,
    "gather": lambda x, index: np.array([x[place] for place in index]),
    "concat": lambda *parts: np.hstack(parts),
    "linear": linear,
    "dot": dot,
    "weighted_sum": lambda w, V: np.einsum("s,s...->...", w, V),
    "mixture": lambda w, Z: sum(share * softmax(row) for share, row in zip(w, Z, strict=True)),
    "outer": lambda x, y: np.einsum("a,b->ab", x, y),
    "add": lambda *terms: sum(terms),
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y if y != 0 else 0 * x,
    "total": lambda x: math.fsum(x),
    "sum_of_rows": lambda A: np.einsum("ts->s", A),
    "around": around,
    "copied": copied,
    "one_before": lambda x: np.concatenate([[0.0], x[:-1]]),
    "first_chosen": first_chosen,
    "mean_choice": mean_choice,
    "chunk_softmax": chunk_softmax,
    "unit": unit,
    "log_kernel": log_kernel,
    "delta_rule": delta_rule,
    "tanh": lambda x: 2 * logistic(2 * x) - 1,
    "sigmoid": logistic,
    "relu": lambda x: np.where(x > 0, x, 0.0),
    "softmax": softmax,
    "sparsemax": sparsemax,
    "entmax": entmax,
    "sigmoid_weights": sigmoid_weights,
    "softmax_with_sink": lambda x, b: np.exp(x) / (np.exp(b) + np.exp(x).sum()),
    "tempered_softmax": lambda x, a: softmax(x * math.exp(-a)),
    "top_k": top_k,
    "around_best": lambda x, reach: np.hstack(
        [
            np.zeros(max(x.argmax() - reach, 0)),
            softmax(x[max(x.argmax() - reach, 0) : x.argmax() + reach + 1]),
            np.zeros(max(len(x) - x.argmax() - reach - 1, 0)),
        ]
    ),
    "seen_alone": lambda x: np.array([0 if each == -math.inf else each for each in x]),
    "greatest": lambda x: np.where(x == x.max(), 1.0, 0.0),
    "mask": lambda e, m: np.array([x if seen else -math.inf for x, seen in zip(e, m, strict=True)]),
    "window": lambda places, p, width: (np.abs(places - p) <= width) * 1.0,
    "gaussian": lambda places, p, sigma: np.exp(-0.5 * np.square((places - p) / sigma)),
    "centre": lambda share, length: min(length * float(share), length - 1),
    "gate": gate,
    "candidate": lambda x, r, s, start: np.tanh(
        x[start : start + len(r)] + r * s[start : start + len(r)]
    ),
    "blend": lambda n, z, s: n + z * (s - n),
    "two_products": lambda f, C, i, g: f * C + i * g,
    "gated_tanh": lambda o, C: o * np.tanh(C),
    "maxout": lambda x: np.maximum(x[0::2], x[1::2]),
}


def check_symbols(sheet: Any, atol: float = 1e-9) -> None:
    """Each computed symbol of a sheet equals its operation on the symbols that it names."""
    for symbol in sheet.symbols.values():
        if symbol.operation in (None, "module", "change"):
            continue
        values = [each.values for each in symbol.of]
        again = RECOMPUTED[symbol.operation](*values, **symbol.settings)
        np.testing.assert_allclose(symbol.values, again, atol=atol, err_msg=symbol.id)
