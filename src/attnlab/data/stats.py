"""What there is to know of a prepared split: sizes, lengths, unknown tokens, dropped rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.batch import UNK
from attnlab.data.ragged import Ragged


def kept_rows(dropped: Counter[str], *faults: tuple[str, NDArray[np.bool_]]) -> NDArray[np.int64]:
    """The numbers of the rows that have no fault; each other row is counted in `dropped` by its first fault.

    faults: (the reason to drop a row, whether it holds of a row (rows,)), at least one.
    """
    good = np.ones_like(faults[0][1])
    for reason, faulty in faults:
        if count := int(np.count_nonzero(good & faulty)):
            dropped[reason] += count
        good &= ~faulty
    return np.flatnonzero(good)


class LengthCounter:
    """Lengths and unknown tokens of one side; it keeps a number per length that occurs, not per row."""

    def __init__(self) -> None:
        self._lengths: Counter[int] = Counter()
        self._unknown = 0

    def add(self, ids: Ragged) -> None:
        lengths, counts = np.unique(ids.lengths, return_counts=True)
        self._lengths.update(dict(zip(lengths.tolist(), counts.tolist(), strict=True)))
        self._unknown += int(np.count_nonzero(ids.values == UNK))

    def summary(self) -> dict[str, Any]:
        """Lengths are in tokens, `<eos>` not counted; the histogram is a list of [length, sentences]."""
        histogram = sorted(self._lengths.items())
        lengths = np.array([length for length, _ in histogram])
        counts = np.array([count for _, count in histogram])
        tokens = int((lengths * counts).sum())
        reached = np.cumsum(counts) / counts.sum()
        return {
            "tokens": tokens,
            "mean_length": round(tokens / int(counts.sum()), 4),
            "p50_length": int(lengths[np.searchsorted(reached, 0.50)]),
            "p95_length": int(lengths[np.searchsorted(reached, 0.95)]),
            "max_length": int(lengths[-1]),
            "unknown_tokens": self._unknown,
            "unknown_rate": round(self._unknown / tokens, 6),
            "length_histogram": [[int(length), int(count)] for length, count in histogram],
        }


class SplitCounter:
    """Counts the pairs of a split, batch by batch."""

    def __init__(self) -> None:
        self.pairs = 0
        self.dropped: Counter[str] = Counter()
        self._source, self._target = LengthCounter(), LengthCounter()

    def keep(self, source: Ragged, target: Ragged) -> None:
        self.pairs += len(source)
        self._source.add(source)
        self._target.add(target)

    def drop(self, reason: str) -> None:
        self.dropped[reason] += 1

    def summary(self) -> dict[str, Any]:
        return {
            "rows": self.pairs + sum(self.dropped.values()),
            "pairs": self.pairs,
            "dropped": dict(self.dropped),
            "source": self._source.summary(),
            "target": self._target.summary(),
        }


class LabelledCounter:
    """Counts the labelled sentences of a split, batch by batch.

    names: of the classes, by their numbers.
    dropped: the sentences that cleaning dropped, by their reasons.
    """

    def __init__(self, names: list[str], dropped: Counter[str] | None = None) -> None:
        self.sentences = 0
        self.dropped = Counter(dropped)
        self._names, self._labels = names, np.zeros(len(names), dtype=np.int64)
        self._text = LengthCounter()

    def keep(self, ids: Ragged, labels: NDArray[np.integer]) -> None:
        """labels: (rows,) numbers of the classes."""
        self.sentences += len(ids)
        self._labels += np.bincount(labels, minlength=len(self._names))
        self._text.add(ids)

    def summary(self) -> dict[str, Any]:
        return {
            "rows": self.sentences + sum(self.dropped.values()),
            "sentences": self.sentences,
            "dropped": dict(self.dropped),
            "labels": dict(zip(self._names, self._labels.tolist(), strict=True)),
            "text": self._text.summary(),
        }
