"""Where the attention looks beside the right source token: how far away, and at which target tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

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


class WrongLinks:
    """Of each target token with a possible link: how many there are, and how many of them look elsewhere.

    Where a target token follows from the tokens before it, a model need not look at all, and no gradient says
    where: an alignment error rate may consist of such tokens alone.
    """

    def __init__(self) -> None:
        self._linked: Counter[str] = Counter()
        self._wrong: Counter[str] = Counter()

    def update(self, weights: ArrayLike, possible: ArrayLike, tokens: Sequence[str]) -> None:
        """Add one sentence: weights (T, S) and links as in `AlignmentOffsets`, and its T target tokens."""
        strongest = np.asarray(weights).argmax(axis=1)  # (T,)
        links = np.asarray(possible, dtype=np.int64).reshape(-1, 2)
        right = {(int(target), int(source)) for target, source in links}
        for target in {target for target, _ in right}:
            self._linked[tokens[target]] += 1
            self._wrong[tokens[target]] += (target, int(strongest[target])) not in right

    def compute(self) -> list[dict[str, int | str]]:
        """A row {"token", "links", "wrong"} for each token, those with most wrong links first."""
        order = sorted(self._linked, key=lambda token: (-self._wrong[token], token))
        return [{"token": token, "links": self._linked[token], "wrong": self._wrong[token]} for token in order]
