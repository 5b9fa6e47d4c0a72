"""How far beside the right source token the attention looks: a model can align well and yet be one token off."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import ArrayLike


class AlignmentOffsets:
    """The offset of a target token is the position of its strongest source token (the first of equals) less that of
    the nearest source token it has a possible link to: 0 looks at a right one, 1 at the one behind it.

    An alignment error rate near 1 with all offsets at 1 is not a failure to align: the state that asks, or the
    encoder's output that answers, holds the neighbour. Target tokens without a possible link are not counted.
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def update(self, weights: ArrayLike, possible: ArrayLike) -> None:
        """Add one sentence: weights (T, S) without pads, possible links (n, 2) of [target position, source position],
        the sure ones among them."""
        strongest = np.asarray(weights).argmax(axis=1)  # (T,)
        links = np.asarray(possible, dtype=np.int64).reshape(-1, 2)
        for target in np.unique(links[:, 0]):
            offsets = strongest[target] - links[links[:, 0] == target, 1]
            self._counts[int(offsets[np.abs(offsets).argmin()])] += 1

    def compute(self) -> list[dict[str, int]]:
        """A row {"offset", "tokens"} for each offset from the smallest to the largest that occurred."""
        if not self._counts:
            return []
        span = range(min(self._counts), max(self._counts) + 1)
        return [{"offset": offset, "tokens": self._counts[offset]} for offset in span]
