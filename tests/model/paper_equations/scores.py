"""The scores of one query s and one encoder output h.

seen is what coverage adds to the projected key (See et al. 2017, equation 11: v' tanh(W_h h_i + W_s
s_t + w_c c_i + b) for the additive score; wherever h enters projected or as it is, in the others).
"""

from __future__ import annotations

import numpy as np

from paper_equations.cells import Weights


def dot(w: Weights, s, h, seen=0.0):
    """Luong et al. 2015, 3.1: s' h."""
    return s @ (h + seen)


def scaled_dot(w: Weights, s, h, seen=0.0):
    """Vaswani et al. 2017, equation 1: s' h / sqrt(n)."""
    return s @ (h + seen) / np.sqrt(len(s))


def general(w: Weights, s, h, seen=0.0):
    """Luong et al. 2015, 3.1: s' W h."""
    return s @ (w["W.weight"] @ h + seen)


def scaled_luong(w: Weights, s, h, seen=0.0):
    """tensorflow/nmt: g s' W h."""
    return w["g"] * (s @ (w["W.weight"] @ h + seen))


def concat(w: Weights, s, h, seen=0.0):
    """Luong et al. 2015, 3.1: v' tanh(W [s; h])."""
    return w["v"] @ np.tanh(w["W.weight"] @ np.concatenate([s, h]) + seen)


def bahdanau(w: Weights, s, h, seen=0.0):
    """Bahdanau et al. 2015, A.1.2: v' tanh(W s + U h)."""
    return w["v"] @ np.tanh(w["W.weight"] @ s + w["U.weight"] @ h + seen)


def normed_bahdanau(w: Weights, s, h, seen=0.0):
    """tensorflow/nmt, after Salimans and Kingma 2016: g v'/|v| tanh(W s + U h + b)."""
    v = w["v"] / np.sqrt(np.sum(w["v"] ** 2))
    return w["g"] * v @ np.tanh(w["W.weight"] @ s + w["U.weight"] @ h + w["U.bias"] + seen)


def cosine(w: Weights, s, h, seen=0.0):
    """Graves et al. 2014, 3.3.1: g s' h / (|s| |h|).

    A vector without length has no direction, and scores 0.
    """
    lengths = np.sqrt(np.sum(s**2)) * np.sqrt(np.sum((h + seen) ** 2))
    return w["g"] * (s @ (h + seen)) / lengths if lengths > 0 else 0.0


def linear_attention(w: Weights, s, h, seen=0.0):
    """Katharopoulos et al. 2020, equations 4 and 7: the logarithm of phi(W s)' phi(U h)."""
    phi = lambda x: np.where(x > 0, x + 1, np.exp(x))  # noqa: E731
    return np.log(phi(w["W.weight"] @ s) @ phi(w["U.weight"] @ h + seen))


def delta_rule(w: Weights, s, keys, seen):
    """Schlag et al. 2021, section 4.2: the weight (S,) of each of the tokens, in their order.

    A memory is written and read whose values are the numbers of the tokens, as one-hot vectors.
    """
    memory = np.zeros((len(keys), len(w["U.weight"])))
    for i, h in enumerate(keys):
        k = w["U.weight"] @ h
        k = k / np.sqrt(np.sum(k**2)) if k.any() else k
        beta = 1 / (1 + np.exp(-(w["w.weight"][0] @ h)))
        value = np.eye(len(keys))[i]
        memory = memory + beta * np.outer(value - memory @ k, k)
    query = w["W.weight"] @ s
    return memory @ query + np.array([query @ (each + np.zeros_like(query)) for each in seen])


def uniform(w: Weights, s, h, seen=0.0):
    """Every source token alike: the weights are 1 / n."""
    return 0.0


def location(w: Weights, s, i: int):
    """Luong et al. 2015, equation 8: (W s)_i."""
    return w["W.weight"][i] @ s


CONTENT_SCORES = {
    "dot": dot,
    "scaled_dot": scaled_dot,
    "general": general,
    "scaled_luong": scaled_luong,
    "concat": concat,
    "bahdanau": bahdanau,
    "normed_bahdanau": normed_bahdanau,
    "cosine": cosine,
    "linear_attention": linear_attention,
    "uniform": uniform,
}
