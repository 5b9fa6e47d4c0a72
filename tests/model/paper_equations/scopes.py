"""Local attention: which positions of n a step sees, and the factors of their weights (Luong et al.
2015, 3.2).
"""

from __future__ import annotations

import numpy as np

from paper_equations.cells import Weights, sigmoid


def local_m(t: int, n: int, width: int):
    """p_t = t, and the window [p_t - D, p_t + D].

    No farther than the last token, for targets may be longer.
    """
    p = min(t, n - 1)
    return np.array([p - width <= i <= p + width for i in range(n)]), np.ones(n)


def local_p(w: Weights, s, n: int, width: int):
    """p_t = S sigmoid(v' tanh(W s_t)), equation 9, no farther than the last token.

    exp(-(i - p_t)^2 / (2 sigma^2)) with sigma = D/2, equation 10.
    """
    p = min(n * sigmoid(w["v"] @ np.tanh(w["W.weight"] @ s)), n - 1)
    i = np.arange(n)
    return (i >= p - width) & (i <= p + width), np.exp(-((i - p) ** 2) / (2 * (width / 2) ** 2))
