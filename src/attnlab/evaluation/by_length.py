"""Quality by the length of the source: what attention was invented for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from torchmetrics.functional.text import sacre_bleu_score

_WIDTHS = (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000)


def length_buckets(lengths: ArrayLike, most: int = 10) -> list[tuple[int, int]]:
    """Ranges [from, to] of one round width that cover the lengths, `most` of them at the most.

    The width follows the 99th percentile; the few longer sentences go to the last range. Ranges without a
    sentence are left out.
    """
    values = np.asarray(lengths, dtype=np.int64)
    if values.size == 0:
        return []
    low, high = int(values.min()), int(np.percentile(values, 99, method="higher"))
    widths = (width for width in _WIDTHS if (high - 1) // width - (low - 1) // width < most)
    width = next(widths, max(1, -(-high // most)))
    # Ranges are 1-5, 6-10, ...: an upper end is a multiple of the width.
    ends = list(range(-(-low // width) * width, high + width, width))
    buckets = [(end - width + 1, end) for end in ends if end - width + 1 <= high]
    buckets[-1] = (buckets[-1][0], max(buckets[-1][1], int(values.max())))
    return [(a, b) for a, b in buckets if ((values >= a) & (values <= b)).any()]


def by_length(
    source_lengths: ArrayLike,
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str,
    ranges: Sequence[tuple[int, int]] | None = None,
) -> list[dict[str, int | float]]:
    """Corpus BLEU (0..100) and exact match (0..1) of each range of source lengths.

    A row: {"from", "to", "sentences", "bleu", "exact_match"}, both ends included.

    source_lengths: in tokens, `<eos>` not counted.
    ranges: [from, to], of lengths that occur; None chooses about ten round ones.

    Raises:
        ValueError: lists of different lengths.
    """
    lengths = np.asarray(source_lengths, dtype=np.int64)
    if not len(lengths) == len(hypotheses) == len(references):
        raise ValueError(
            f"{len(lengths)} lengths, {len(hypotheses)} hypotheses and {len(references)} references do not match"
        )
    table: list[dict[str, int | float]] = []
    for low, high in length_buckets(lengths) if ranges is None else ranges:
        rows = np.flatnonzero((lengths >= low) & (lengths <= high)).tolist()
        ours = [hypotheses[row].rstrip() for row in rows]
        theirs = [[references[row].rstrip()] for row in rows]
        bleu = 100 * float(sacre_bleu_score(ours, theirs, tokenize=tokenize))  # type: ignore[arg-type]
        equal = sum(hypotheses[row] == references[row] for row in rows)
        table.append({"from": low, "to": high, "sentences": len(rows), "bleu": bleu, "exact_match": equal / len(rows)})
    return table
