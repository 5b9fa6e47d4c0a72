"""Statistics of prepared rows: kept and dropped, lengths, unknown tokens; and remarks on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.data.padding import Ragged
from attnlab.errors import show

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
        self._unit = unit
        self._rows = 0
        self._labels: Counter[int] = Counter()
        self._unknown: Counter[str] = Counter()  # unknown tokens, by side
        self._rewritten = 0  # targets that their own tokens write otherwise
        self._first_rewritten: tuple[str, str] | None = None
        self._lengths: dict[str, Counter[int]] = {side: Counter() for side in sides}

    def add(
        self, ids: Mapping[str, Ragged], unknown: Mapping[str, int], labels: Sequence[int] = ()
    ) -> None:
        """Count the rows of a batch.

        ids: of the kept rows, by side.
        unknown: how many of them are unknown, by side.
        labels: numbers of their classes, where they have some.
        """
        any_side = next(iter(ids.values()))
        self._rows += len(any_side)
        self._labels.update(labels)
        for side, lengths in self._lengths.items():
            lengths.update(ids[side].lengths.tolist())
            self._unknown[side] += unknown[side]

    def add_rewritten(self, text: str, written: str) -> None:
        """Count a target that its own tokens write otherwise."""
        self._rewritten += 1
        if self._first_rewritten is None:
            self._first_rewritten = text, written

    def summary(self, class_names: Sequence[str] = ()) -> dict[str, Any]:
        """What `stats.json` says of the split.

        class_names: by their numbers.
        """
        summary: dict[str, Any] = {
            "rows": self._rows + self.dropped.total,
            self._unit: self._rows,
            "dropped": dict(self.dropped.counts),
            "first_dropped": dict(self.dropped.first),
        }
        if class_names:
            summary["labels"] = {
                name: self._labels[number] for number, name in enumerate(class_names)
            }
        if self._first_rewritten is not None:
            text, written = self._first_rewritten
            summary["rewritten"] = self._rewritten
            summary["first_rewritten"] = f"{show(text, 60)} as {show(written, 60)}"
        for side in self._lengths:
            summary[side] = self._summary_of_side(side)
        return summary

    def _summary_of_side(self, side: str) -> dict[str, Any]:
        """The lengths and unknown tokens of a side.

        Lengths are in tokens, `<eos>` not counted; the histogram is a list of [length, sentences].
        """
        histogram = [list(each) for each in sorted(self._lengths[side].items())]
        lengths, counts = np.array(histogram).T
        sentences = int(counts.sum())
        tokens = int((lengths * counts).sum())
        unknown = self._unknown[side]

        # The share of the sentences that are at most so long; the percentiles are where it first
        # reaches 50 and 95 %.
        share_up_to = np.cumsum(counts) / sentences
        median = lengths[np.searchsorted(share_up_to, 0.50)]
        percentile_95 = lengths[np.searchsorted(share_up_to, 0.95)]
        return {
            "tokens": tokens,
            "mean_length": round(tokens / sentences, 4),
            "p50_length": int(median),
            "p95_length": int(percentile_95),
            "max_length": int(lengths[-1]),
            "unknown_tokens": unknown,
            "unknown_rate": round(unknown / tokens, 6),
            "length_histogram": histogram,
        }


def remarks(stats: Mapping[str, Any]) -> Iterator[str]:
    """Sentences on what was ignored or dropped, or is mostly unknown, in prepared data.

    stats: the content of `stats.json`.
    """
    for note in stats.get("notes", ()):
        yield f"note: {note}"

    for split, counted in stats["splits"].items():
        dropped = counted["dropped"]
        if dropped:
            total = sum(dropped.values())
            reasons = dropped_sentence(dropped, counted.get("first_dropped", {}))
            yield f"note: dropped {total} of {counted['rows']} rows of {split}: {reasons}"

    for split, counted in stats["splits"].items():
        if counted.get("rewritten"):
            yield (
                f"warning: of the {counted['pairs']} targets of {split} {counted['rewritten']} are "
                "written otherwise by their own tokens, so that a right answer counts as wrong, "
                f"the first {counted['first_rewritten']}; choose lowercase, normalization and kind "
                "of data.target_tokenizer so that they keep the text, or change the text itself "
                "beforehand"
            )

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
