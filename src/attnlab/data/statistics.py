"""Statistics of prepared rows: kept and dropped, lengths, unknown tokens; and remarks on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.batch import UNK
from attnlab.data.padding import Ragged

MANY_UNKNOWN = 0.3
"""The share of unknown tokens from which on a split is warned of.

Real corpora of words have a few in a hundred.
"""


class DroppedRows:
    """The number of dropped rows by reason, and the first one of each."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}

    def add(self, reason: str, place: str, content: str) -> None:
        """Count a dropped row.

        place: of the row, such as `train.tsv, line 22`.
        content: the row, shortened.
        """
        self.counts[reason] += 1
        self.first.setdefault(reason, f"{place}: {content}")

    @property
    def total(self) -> int:
        return self.counts.total()

    def shown(self) -> str:
        """`3 empty, the first train.tsv, line 22: '' → 'Tom'`."""
        return dropped_sentence(self.counts, self.first)


def dropped_sentence(counts: Mapping[str, int], first: Mapping[str, str]) -> str:
    """Each reason with its count and its first row."""
    parts = []
    for reason, count in sorted(counts.items()):
        example = f", the first {first[reason]}" if reason in first else ""
        parts.append(f"{count} {reason}{example}")
    return "; ".join(parts)


class SplitCounter:
    """Counts the rows of a split, batch by batch.

    Its memory grows with the number of different lengths, not of rows.

    unit: the name of the rows, `pairs` or `sentences`.
    """

    def __init__(self, unit: str, sides: Sequence[str]) -> None:
        self.dropped = DroppedRows()
        self._unit, self._rows, self._labels, self._unknown = (
            unit,
            0,
            Counter[int](),
            Counter[str](),
        )
        self._lengths: dict[str, Counter[int]] = {side: Counter() for side in sides}

    def add(self, ids: Mapping[str, Ragged], labels: Sequence[int] = ()) -> None:
        """Count the rows of a batch.

        ids: of the kept rows, by side.
        labels: numbers of their classes, where they have some.
        """
        self._rows += len(next(iter(ids.values())))
        self._labels.update(labels)
        for side, lengths in self._lengths.items():
            lengths.update(ids[side].lengths.tolist())
            self._unknown[side] += int(np.count_nonzero(ids[side].values == UNK))

    def summary(self, class_names: Sequence[str] = ()) -> dict[str, Any]:
        """class_names: by their numbers."""
        labels = {name: self._labels[number] for number, name in enumerate(class_names)}
        return {
            "rows": self._rows + self.dropped.total,
            self._unit: self._rows,
            "dropped": dict(self.dropped.counts),
            "first_dropped": dict(self.dropped.first),
            **({"labels": labels} if labels else {}),
            **{side: self._summary_of_side(side) for side in self._lengths},
        }

    def _summary_of_side(self, side: str) -> dict[str, Any]:
        """The lengths and unknown tokens of a side.

        Lengths are in tokens, `<eos>` not counted; the histogram is a list of [length, sentences].
        """
        histogram = sorted(self._lengths[side].items())
        lengths, counts = np.array(histogram).T
        tokens = int((lengths * counts).sum())
        reached = np.cumsum(counts) / counts.sum()
        return {
            "tokens": tokens,
            "mean_length": round(tokens / int(counts.sum()), 4),
            "p50_length": int(lengths[np.searchsorted(reached, 0.50)]),
            "p95_length": int(lengths[np.searchsorted(reached, 0.95)]),
            "max_length": int(lengths[-1]),
            "unknown_tokens": self._unknown[side],
            "unknown_rate": round(self._unknown[side] / tokens, 6),
            "length_histogram": [list(each) for each in histogram],
        }


def remarks(stats: Mapping[str, Any]) -> Iterator[str]:
    """Sentences on what was ignored or dropped, or is mostly unknown, in prepared data.

    stats: the content of `stats.json`.
    """
    for note in stats.get("notes", ()):
        yield f"note: {note}"
    for split, counted in stats["splits"].items():
        if counted["dropped"]:
            dropped = sum(counted["dropped"].values())
            reasons = dropped_sentence(counted["dropped"], counted.get("first_dropped", {}))
            yield f"note: dropped {dropped} of {counted['rows']} rows of {split}: {reasons}"
    for split, counted in stats["splits"].items():
        for side, size in stats["vocabulary"].items():
            rate = counted[side]["unknown_rate"]
            if rate >= MANY_UNKNOWN:
                yield (
                    f"warning: {rate:.0%} of the {side} tokens of {split} are unknown: the "
                    f"vocabulary has {size} tokens, learnt from the training split, and all others "
                    "read <unk>; lower data.tokenizer.min_frequency, or choose data/tokenizer=bpe "
                    "or character"
                )
