"""How attention weights compare with alignments made by hand: error rate, offsets, wrong links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


class AlignmentErrorRate:
    """AER after Och and Ney 2003 ("A Systematic Comparison of Various Statistical Alignment Models").

    With A the hypothesised links, S the sure and P the possible ones (S counts as a part of P):

        AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

    with the four sizes summed over the corpus. Every target token that has a possible link gets one
    hypothesised link, to its strongest source token (the first of equals); the other target tokens get none.
    The weights are those with the reference fed, so that row t belongs to reference token t.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all sentences."""
        self._hypothesised = self._sure = self._hit_sure = self._hit_possible = 0

    def update(self, weights: ArrayLike, sure: ArrayLike, possible: ArrayLike) -> None:
        """Add one sentence.

        weights: (T, S), without pads. Rows and columns start at the first token; the `<eos>` row and column
            at the end may be there, and a token whose strongest column is `<eos>` has a wrong link.
        sure, possible: (n, 2) [target position, source position], from 0, without `<bos>`.

        Raises:
            ValueError: weights that are no matrix or not numbers, or links outside of them.
        """
        matrix = np.asarray(weights, dtype=np.float64)
        if matrix.ndim != 2 or not np.isfinite(matrix).all():
            raise ValueError(f"weights must be a finite matrix (T, S), got shape {matrix.shape}")
        sure_links = _link_numbers(sure, matrix.shape, "sure")
        possible_links = np.union1d(sure_links, _link_numbers(possible, matrix.shape, "possible"))

        width = matrix.shape[1]
        linked = np.unique(possible_links // width) if width else possible_links
        hypothesised = linked * width + (matrix[linked].argmax(axis=1) if linked.size else 0)
        self._hypothesised += len(hypothesised)
        self._sure += len(sure_links)
        self._hit_sure += int(np.isin(hypothesised, sure_links).sum())
        self._hit_possible += int(np.isin(hypothesised, possible_links).sum())

    def compute(self) -> float | None:
        """The rate in 0..1, lower is better; None where no sentence had a link."""
        if self._hypothesised + self._sure == 0:
            return None
        return 1 - (self._hit_sure + self._hit_possible) / (self._hypothesised + self._sure)


def _link_numbers(links: ArrayLike, shape: tuple[int, int], name: str) -> NDArray[np.int64]:
    """Links (n, 2) as sorted numbers target * S + source, each once."""
    pairs = np.asarray(links, dtype=np.int64).reshape(-1, 2)
    if pairs.size and ((pairs < 0).any() or (pairs >= np.array(shape)).any()):
        raise ValueError(
            f"{name} links must lie inside the {shape[0]} target and {shape[1]} source positions of the "
            f"weights, got up to {pairs.max(axis=0).tolist()} and down to {pairs.min(axis=0).tolist()}"
        )
    return np.unique(pairs[:, 0] * shape[1] + pairs[:, 1])


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
