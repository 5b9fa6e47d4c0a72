"""BLEU, chrF, TER, ROUGE and exact match of decoded sentences, over batches and processes, and by
source length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torchmetrics import Metric

from attnlab.data.corpus import RougeUnit
from attnlab.evaluation.sentence_statistics import sacrebleu_metrics, text_metrics


class TextMetrics(Metric):
    """Metrics of decoded sentences against one reference each, accumulated over batches and
    processes.

    tokenize: sacrebleu's tokenizer for BLEU: `13a` for raw text, `none` where the corpus comes
        tokenised,
        `intl`, `char`, `zh`, ...
    ter: also the translation edit rate and the token error rate; they take longest, so validation
        does without.
    rouge: also ROUGE with this unit; None does without.

    `compute` gives `bleu`, `chrf`, with `ter` `ter` and `token_error_rate` and with `rouge`
    `rouge1`, `rouge2` and `rougeL` in 0..100 (the two rates can exceed 100), and `exact_match` in
    0..1: the share of hypotheses that equal their reference to the character.
    """

    full_state_update = False

    def __init__(
        self, tokenize: str = "13a", *, ter: bool = True, rouge: RougeUnit | None = None
    ) -> None:
        super().__init__()
        metrics = text_metrics(tokenize, rouge)
        slow = () if ter else ("ter", "token_error_rate")
        self.metrics = {name: metric for name, metric in metrics.items() if name not in slow}
        for name, metric in self.metrics.items():
            self.add_state(name, torch.zeros(metric.sums), dist_reduce_fx="sum")

    def update(self, hypotheses: Sequence[str], references: Sequence[str]) -> None:
        """Add sentences; both lists have one length."""
        rows = [
            {"hypothesis": ours, "reference": theirs, "exact": ours == theirs}
            for ours, theirs in zip(hypotheses, references, strict=True)
        ]
        for name, metric in self.metrics.items() if rows else ():
            before = getattr(self, name)
            setattr(self, name, before + before.new_tensor(metric.statistics(rows).sum(axis=0)))

    def compute(self) -> dict[str, float]:
        """The metrics of all sentences so far, over all processes."""
        sums = {name: np.array(getattr(self, name).tolist()) for name in self.metrics}
        return {
            name: float(metric.scores(sums[name][np.newaxis])[0])
            for name, metric in self.metrics.items()
        }


_WIDTHS = (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000)


def length_buckets(lengths: ArrayLike) -> list[tuple[int, int]]:
    """Ranges [from, to] of one round width that cover the lengths, at most ten.

    The width follows the 99th percentile; longer sentences belong to the last range. Empty ranges
    are left out.
    """
    values = np.asarray(lengths, dtype=np.int64)
    if values.size == 0:
        return []
    low, high = int(values.min()), int(np.percentile(values, 99, method="higher"))
    widths = (width for width in _WIDTHS if (high - 1) // width - (low - 1) // width < 10)
    width = next(widths, max(1, -(-high // 10)))
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
    """
    lengths = np.asarray(source_lengths, dtype=np.int64)
    metric = sacrebleu_metrics(tokenize)["bleu"]
    table: list[dict[str, int | float]] = []
    for low, high in length_buckets(lengths) if ranges is None else ranges:
        rows = np.flatnonzero((lengths >= low) & (lengths <= high)).tolist()
        bleu = metric.corpus_score(
            [hypotheses[row] for row in rows], [[references[row] for row in rows]]
        ).score
        equal = sum(hypotheses[row] == references[row] for row in rows)
        table.append(
            {
                "from": low,
                "to": high,
                "sentences": len(rows),
                "bleu": bleu,
                "exact_match": equal / len(rows),
            }
        )
    return table
