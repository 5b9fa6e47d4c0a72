"""Many tests at once: one in twenty true hypotheses falls by chance, so each has to be judged among the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected by Holm 1979 ("A simple sequentially rejective multiple test procedure", Scandinavian Journal
    of Statistics 6), in their order.

    The smallest of m is multiplied by m, the next one by m - 1, ...; none is then less than the one before it, or more
    than 1. Rejecting what is below 0.05 rejects any true hypothesis at all with a probability of 0.05 at most.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return corrected.tolist()
