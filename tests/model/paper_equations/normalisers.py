"""From scores to weights."""

from __future__ import annotations

import numpy as np


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


NORMALISERS = {"softmax": softmax, "sparsemax": sparsemax}
