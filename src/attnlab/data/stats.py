"""What there is to know of a prepared split: sizes, lengths, unknown tokens, dropped rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from attnlab.batch import UNK


class SplitCounter:
    """Counts row by row; it keeps a number per length that occurs, not per row."""

    def __init__(self) -> None:
        self.pairs = 0
        self.dropped: Counter[str] = Counter()
        self._lengths: dict[str, Counter[int]] = {"source": Counter(), "target": Counter()}
        self._unknown: Counter[str] = Counter()

    def keep(self, source_ids: list[int], target_ids: list[int]) -> None:
        self.pairs += 1
        for side, ids in (("source", source_ids), ("target", target_ids)):
            self._lengths[side][len(ids)] += 1
            self._unknown[side] += ids.count(UNK)

    def drop(self, reason: str) -> None:
        self.dropped[reason] += 1

    def summary(self) -> dict[str, Any]:
        """Lengths are in tokens, `<eos>` not counted; the histogram is a list of [length, pairs]."""
        return {
            "rows": self.pairs + sum(self.dropped.values()),
            "pairs": self.pairs,
            "dropped": dict(self.dropped),
            "source": self._side("source"),
            "target": self._side("target"),
        }

    def _side(self, side: str) -> dict[str, Any]:
        histogram = sorted(self._lengths[side].items())
        lengths = np.array([length for length, _ in histogram])
        counts = np.array([count for _, count in histogram])
        tokens = int((lengths * counts).sum())
        reached = np.cumsum(counts) / counts.sum()
        return {
            "tokens": tokens,
            "mean_length": round(tokens / self.pairs, 4),
            "p50_length": int(lengths[np.searchsorted(reached, 0.50)]),
            "p95_length": int(lengths[np.searchsorted(reached, 0.95)]),
            "max_length": int(lengths[-1]),
            "unknown_tokens": self._unknown[side],
            "unknown_rate": round(self._unknown[side] / tokens, 6),
            "length_histogram": [[int(length), int(count)] for length, count in histogram],
        }
