"""The operations between symbols, on NumPy arrays of one sentence, so without the batch axis.

Axes: S source tokens, K any length that a product sums over.

Each takes the values of the symbols that it reads, and settings by keyword. The page knows the same
names: it writes the arithmetic of a number out, and lights the numbers that it was made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def lookup(matrix: Array, *, index: int) -> Array:
    """A row of a matrix: the embedding of a token."""
    return matrix[index]


def columns(matrix: Array, *, start: int, stop: int) -> Array:
    return matrix[:, start:stop]


def gather(x: Array, *, index: Sequence[int]) -> Array:
    """The numbers at some places of a vector."""
    return x[list(index)]


def concat(*parts: Array) -> Array:
    return np.concatenate(parts)


def linear(weight: Array, x: Array, bias: Array | None = None) -> Array:
    """W x + b of a vector x (K,), or of each row of a matrix x (S, K)."""
    product = x @ weight.T
    return product if bias is None else product + bias


def dot(query: Array, keys: Array) -> Array:
    """The product of a vector (K,) with each row of a matrix (S, K), or with a vector."""
    return np.asarray(keys @ query)


def weighted_sum(weights: Array, values: Array) -> Array:
    """Rows (S, K), each times its weight (S,), added up: (K,)."""
    return weights @ values


def mixture(weights: Array, logits: Array) -> Array:
    """The softmax of each row (S, K), each times its weight (S,), added up: (K,)."""
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return weights @ (powers / powers.sum(1, keepdims=True))


def outer(one: Array, other: Array) -> Array:
    return np.multiply.outer(one, other)


def add(*terms: Array) -> Array:
    """A sum; a vector is added to each row of a matrix."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def multiply(one: Array, other: Array) -> Array:
    """Number by number; a single number multiplies all."""
    return one * other


def divide(one: Array, other: Array) -> Array:
    """0 where there is nothing to divide, as of weights that the mask has all taken away."""
    return np.divide(one, other, out=np.zeros_like(one), where=other != 0)


def total(x: Array) -> Array:
    return np.asarray(x.sum())


def around(x: Array, *, width: int) -> Array:
    """Of each place of a vector (S,) the numbers of its neighbourhood: (S, width), 0 outside."""
    padded = np.pad(x, width // 2)
    return np.stack([padded[place : place + width] for place in range(len(x))])


def one_before(x: Array) -> Array:
    """The number of the place before; 0 at the first."""
    return np.append(0.0, x[:-1])


def copied(*weights: Array, tokens: Sequence[int], size: int) -> Array:
    """The weight (size,) of each token of a vocabulary, as it stands in the source.

    weights: (S,) of each head, of which the mean counts.
    tokens: of the source.
    """
    found = np.zeros(size)
    np.add.at(found, list(tokens), np.mean(weights, axis=0))
    return found


def sum_of_rows(matrix: Array) -> Array:
    return matrix.sum(0)


def unit(x: Array) -> Array:
    """Each row divided by its length."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True).clip(1e-12)


def log_kernel(query: Array, keys: Array) -> Array:
    """log(phi(q) · phi(k)) of a vector (K,) with each row of a matrix (S, K), phi = elu + 1."""
    return np.log(elu_plus_one(keys) @ elu_plus_one(query))


def delta_rule(keys: Array, tokens: Array, w: Array, *, written: Sequence[bool]) -> Array:
    """E_i = beta_i (k_i - sum_{j > i} (k_i · k_j) E_j), with beta_i = sigmoid(w · h_i): (S, A)."""
    strength = sigmoid(tokens @ w) * np.asarray(written)
    found = np.zeros_like(keys)
    for i in reversed(range(len(keys))):
        overlap = keys[i + 1 :] @ keys[i]
        found[i] = strength[i] * (keys[i] - overlap @ found[i + 1 :])
    return found


def elu_plus_one(x: Array) -> Array:
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def sparsemax(x: Array) -> Array:
    """max(0, x - tau), with the one tau that makes the sum 1."""
    ordered = np.sort(x[np.isfinite(x)])[::-1]
    sums = ordered.cumsum()
    counts = np.arange(1, len(ordered) + 1)
    size = (1 + counts * ordered > sums).sum()
    tau = (sums[size - 1] - 1) / size
    return relu(x - tau)


def entmax(x: Array, *, alpha: float) -> Array:
    """[(alpha - 1) x - tau]_+^(1 / (alpha - 1)), with the one tau that makes the sum 1."""
    scaled = (alpha - 1) * x
    power = 1 / (alpha - 1)
    below, above = scaled.max() - 1, scaled.max()
    for _ in range(100):
        tau = (below + above) / 2
        if (relu(scaled - tau) ** power).sum() > 1:
            below = tau
        else:
            above = tau
    return relu(scaled - below) ** power


def sigmoid_weights(x: Array, offset: Array) -> Array:
    """sigmoid(x + offset - log n), with n the number of tokens that may be seen."""
    return sigmoid(x + offset - np.log(np.isfinite(x).sum()))


def softmax_with_sink(x: Array, sink: Array) -> Array:
    """exp(x) / (exp(sink) + the sum of all exp(x))."""
    return softmax(np.append(x, sink))[:-1]


def tempered_softmax(x: Array, log_temperature: Array) -> Array:
    return softmax(x / np.exp(log_temperature))


def top_k(x: Array, *, k: int) -> Array:
    """Softmax over the k greatest numbers, and those that equal the last of them."""
    least = np.sort(x)[-min(k, len(x))]
    return softmax(np.where(x < least, -np.inf, x))


def around_best(x: Array, *, reach: int) -> Array:
    """Softmax over the places within `reach` of the first greatest number."""
    distance = abs(np.arange(len(x)) - x.argmax())
    return softmax(np.where(distance > reach, -np.inf, x))


def seen_alone(x: Array) -> Array:
    """The numbers as they are, and 0 where nothing may be seen."""
    return np.where(np.isfinite(x), x, 0)


def greatest(x: Array) -> Array:
    """1 for the greatest number, of equal ones the first; else 0."""
    return (np.arange(len(x)) == x.argmax()).astype(np.float64)


def first_chosen(energy: Array, before: Array) -> Array:
    """1 at the first number from 0 up, from where the last step stopped; else 0."""
    passed = before.cumsum()
    comes_by = (passed >= passed[-1] / 2) & (passed > 0)
    may_stop = comes_by & (energy >= 0)
    return (may_stop & (may_stop.cumsum() == 1)).astype(np.float64)


def mean_choice(energy: Array, before: Array) -> Array:
    """p_i sum_k before_k prod_{k <= l < i} (1 - p_l), with p = sigmoid(energy)."""
    p = sigmoid(energy)
    weights = np.zeros_like(p)
    comes_by = 0.0
    for i in range(len(p)):
        comes_by += before[i]
        weights[i] = p[i] * comes_by
        comes_by *= 1 - p[i]
    return weights


def chunk_softmax(stops: Array, energies: Array, *, size: int) -> Array:
    """A softmax over the tokens up to each, `size` at most, times how likely a step stops there."""
    weights = np.zeros_like(stops)
    for end in np.flatnonzero(stops):
        begin = max(end - size + 1, 0)
        weights[begin : end + 1] += stops[end] * softmax(energies[begin : end + 1])
    return weights


def mask(scores: Array, visible: Array) -> Array:
    """Minus infinity where nothing may be seen."""
    return np.where(visible > 0, scores, -np.inf)


def window(positions: Array, centre: Array, *, width: float) -> Array:
    """1 within `width` positions of the centre, else 0."""
    return (abs(positions - centre) <= width).astype(np.float64)


def gaussian(positions: Array, centre: Array, *, sigma: float) -> Array:
    return np.exp(-((positions - centre) ** 2) / (2 * sigma**2))


def centre(share: Array, *, length: int) -> Array:
    """A share of a sentence's length as a position, no farther than its last token."""
    return np.minimum(length * share, length - 1.0)


def gate(one: Array, other: Array, *, start: int, size: int, function: str) -> Array:
    """sigmoid or tanh of the sum of the same part of two vectors: a gate of a cell."""
    part = slice(start, start + size)
    return FUNCTIONS[function](one[part] + other[part])


def candidate(one: Array, reset: Array, other: Array, *, start: int) -> Array:
    """tanh of a part of one vector and, as far as a gate lets it, that of another: of a GRU."""
    part = slice(start, start + len(reset))
    return np.tanh(one[part] + reset * other[part])


def blend(new: Array, share: Array, old: Array) -> Array:
    """(1 - z) n + z s: what a GRU's update gate makes of the candidate and the old state."""
    return (1 - share) * new + share * old


def two_products(one: Array, by: Array, other: Array, its: Array) -> Array:
    """f C + i C̃: an LSTM's cell state."""
    return one * by + other * its


def gated_tanh(opening: Array, x: Array) -> Array:
    """o tanh(C): an LSTM's hidden state."""
    return opening * np.tanh(x)


def maxout(x: Array) -> Array:
    """The larger one of each pair of neighbours."""
    return x.reshape(-1, 2).max(1)


FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {"sigmoid": sigmoid, "tanh": np.tanh}
OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "lookup": lookup,
    "columns": columns,
    "gather": gather,
    "concat": concat,
    "linear": linear,
    "dot": dot,
    "weighted_sum": weighted_sum,
    "mixture": mixture,
    "outer": outer,
    "add": add,
    "multiply": multiply,
    "divide": divide,
    "total": total,
    "around": around,
    "one_before": one_before,
    "sum_of_rows": sum_of_rows,
    "copied": copied,
    "unit": unit,
    "log_kernel": log_kernel,
    "delta_rule": delta_rule,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "relu": relu,
    "softmax": softmax,
    "sparsemax": sparsemax,
    "entmax": entmax,
    "sigmoid_weights": sigmoid_weights,
    "softmax_with_sink": softmax_with_sink,
    "tempered_softmax": tempered_softmax,
    "top_k": top_k,
    "around_best": around_best,
    "greatest": greatest,
    "seen_alone": seen_alone,
    "first_chosen": first_chosen,
    "mean_choice": mean_choice,
    "chunk_softmax": chunk_softmax,
    "mask": mask,
    "window": window,
    "gaussian": gaussian,
    "centre": centre,
    "gate": gate,
    "candidate": candidate,
    "blend": blend,
    "two_products": two_products,
    "gated_tanh": gated_tanh,
    "maxout": maxout,
}
