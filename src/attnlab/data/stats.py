"""Statistics of a prepared split: sizes, lengths, unknown tokens, labels, dropped rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.batch import UNK
from attnlab.data.padding import Ragged


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
    """Lengths and unknown tokens of one side; its size depends on the number of different lengths, not of rows."""

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
    """Counts the rows of a split, batch by batch.

    unit: the name of the rows, `pairs` or `sentences`.
    dropped: the number of dropped rows, by reason.
    """

    def __init__(self, unit: str, sides: Sequence[str]) -> None:
        self.kept = 0
        self.dropped: Counter[str] = Counter()
        self._unit, self._sides = unit, {side: LengthCounter() for side in sides}
        self._labels: Counter[int] = Counter()

    def add(self, ids: Mapping[str, Ragged], labels: Sequence[int] = ()) -> None:
        """ids: of the kept rows, by side. labels: numbers of their classes, where they have some."""
        self.kept += len(next(iter(ids.values())))
        for side, counter in self._sides.items():
            counter.add(ids[side])
        self._labels.update(labels)

    def summary(self, class_names: Sequence[str] = ()) -> dict[str, Any]:
        """class_names: by their numbers."""
        labels = {name: self._labels[number] for number, name in enumerate(class_names)}
        return {
            "rows": self.kept + self.dropped.total(),
            self._unit: self.kept,
            "dropped": dict(self.dropped),
            **({"labels": labels} if labels else {}),
            **{side: counter.summary() for side, counter in self._sides.items()},
        }
