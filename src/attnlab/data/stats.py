"""What there is to know of a prepared split: sizes, lengths, unknown tokens, dropped rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from attnlab.batch import UNK


class LengthCounter:
    """Lengths and unknown tokens of one side; it keeps a number per length that occurs, not per row."""

    def __init__(self) -> None:
        self._lengths: Counter[int] = Counter()
        self._unknown = 0

    def add(self, ids: list[int]) -> None:
        self._lengths[len(ids)] += 1
        self._unknown += ids.count(UNK)

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
    """Counts the pairs of a split, row by row."""

    def __init__(self) -> None:
        self.pairs = 0
        self.dropped: Counter[str] = Counter()
        self._source, self._target = LengthCounter(), LengthCounter()

    def keep(self, source_ids: list[int], target_ids: list[int]) -> None:
        self.pairs += 1
        self._source.add(source_ids)
        self._target.add(target_ids)

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
    """Counts the labelled sentences of a split, row by row."""

    def __init__(self, names: list[str]) -> None:
        self.sentences = 0
        self.dropped: Counter[str] = Counter()
        self._labels = dict.fromkeys(names, 0)
        self._text = LengthCounter()

    def keep(self, ids: list[int], label: str) -> None:
        self.sentences += 1
        self._labels[label] += 1
        self._text.add(ids)

    def drop(self, reason: str) -> None:
        self.dropped[reason] += 1

    def summary(self) -> dict[str, Any]:
        return {
            "rows": self.sentences + sum(self.dropped.values()),
            "sentences": self.sentences,
            "dropped": dict(self.dropped),
            "labels": self._labels,
            "text": self._text.summary(),
        }
