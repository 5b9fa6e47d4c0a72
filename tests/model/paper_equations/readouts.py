"""What the output layer reads of a step: state s, context c, last token y.

c is None where it does not go there.
"""

from __future__ import annotations

import numpy as np

from paper_equations.cells import Weights


def attentional(w: Weights, s, c, y):
    """Luong et al. 2015, equation 5: tanh(W_c [c; s])."""
    return np.tanh(w["projection.weight"] @ np.concatenate([c, s]) + w["projection.bias"])


def tanh(w: Weights, s, c, y):
    """A hidden layer over what Bahdanau's g reads (2015, equation 4)."""
    return np.tanh(w["projection.weight"] @ plain(w, s, c, y) + w["projection.bias"])


def maxout(w: Weights, s, c, y):
    """Bahdanau et al. 2015, A.2.2: t_j = max(u_{2j-1}, u_{2j}) with u = U s + V E y + C c."""
    u = w["U.weight"] @ s + w["U.bias"] + w["V.weight"] @ y
    if c is not None:
        u = u + w["C.weight"] @ c
    return np.array([max(u[2 * j], u[2 * j + 1]) for j in range(len(u) // 2)])


def plain(w: Weights, s, c, y):
    return np.concatenate([s, y] if c is None else [s, c, y])


def state(w: Weights, s, c, y):
    """Sutskever et al. 2014, 2: the softmax reads the top hidden state."""
    return s


READOUTS = {
    "attentional": attentional,
    "tanh": tanh,
    "maxout": maxout,
    "plain": plain,
    "state": state,
}
