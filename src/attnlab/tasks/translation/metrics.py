"""BLEU, chrF, TER, ROUGE and exact match of decoded sentences, in all and by source length."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torchmetrics
from numpy.typing import ArrayLike
from sacrebleu.metrics import BLEU
from torchmetrics import Metric

from attnlab.data.corpus import RougeUnit
from attnlab.evaluation.alignments import ALIGNMENT_METRICS
from attnlab.evaluation.sentence_statistics import (
    ROUGE,
    CorpusMetric,
    Perplexity,
    Rouge,
    SacrebleuMetric,
    Share,
    TokenErrorRate,
    TokenNll,
    bleu_metric,
    sacrebleu_metrics,
)

# What is slow to compute, and so left out of validation.
SLOW = ("ter", "token_error_rate")

# Widths of ranges of lengths that read well in a table.
ROUND_WIDTHS = (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000)
MOST_RANGES = 10


class TextMetrics(Metric):
    """Metrics of decoded sentences against one reference each, over batches and processes.

    tokenize: sacrebleu's tokenizer for BLEU: `13a` for raw text, `none` where the corpus comes
        tokenised, `intl`, `char`, `zh`, ...
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
        self.metrics = text_metrics(tokenize, rouge)
        if not ter:
            for name in SLOW:
                del self.metrics[name]
        for name, metric in self.metrics.items():
            self.add_state(name, torch.zeros(metric.sums), dist_reduce_fx="sum")

    def update(self, hypotheses: Sequence[str], references: Sequence[str]) -> None:
        """Add sentences; both lists have one length."""
        rows = rows_of_texts(hypotheses, references)
        if not rows:
            return
        for name, metric in self.metrics.items():
            before = getattr(self, name)
            added = metric.statistics(rows).sum(axis=0)
            setattr(self, name, before + before.new_tensor(added))

    def compute(self) -> dict[str, float]:
        """The metrics of all sentences so far, over all processes."""
        values = {}
        for name, metric in self.metrics.items():
            # The formulas are numpy's, of doubles, and take the sums of several samples.
            sums = np.array([getattr(self, name).tolist()])  # (1, K)
            values[name] = float(metric.scores(sums)[0])
        return values


def rows_of_texts(hypotheses: Sequence[str], references: Sequence[str]) -> list[dict[str, Any]]:
    """What the metrics read of each sentence; both lists have one length."""
    return [
        {"hypothesis": hypothesis, "reference": reference, "exact": hypothesis == reference}
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


def length_buckets(lengths: ArrayLike) -> list[tuple[int, int]]:
    """Ranges [from, to] of one round width that cover the lengths, at most ten.

    The width follows the 99th percentile; longer sentences belong to the last range. Empty ranges
    are left out.
    """
    values = np.asarray(lengths, dtype=np.int64)
    if values.size == 0:
        return []
    shortest = int(values.min())
    longest = int(values.max())
    longest_usual = int(np.percentile(values, 99, method="higher"))
    width = _range_width(shortest, longest_usual)

    # Ranges are 1-5, 6-10, ...: an upper end is a multiple of the width.
    first_end = math.ceil(shortest / width) * width
    buckets = []
    for end in range(first_end, longest_usual + width, width):
        buckets.append((end - width + 1, end))
    last_start, last_end = buckets[-1]
    buckets[-1] = (last_start, max(last_end, longest))

    def occurs(bucket: tuple[int, int]) -> bool:
        low, high = bucket
        return bool(((values >= low) & (values <= high)).any())

    return [bucket for bucket in buckets if occurs(bucket)]


def _range_width(shortest: int, longest: int) -> int:
    """The smallest round width of ranges, at most ten, that hold the two lengths."""
    for width in ROUND_WIDTHS:
        # Length 1 is the first of the first range, so range i begins at i * width + 1.
        first_range = (shortest - 1) // width
        last_range = (longest - 1) // width
        if last_range - first_range < MOST_RANGES:
            return width
    return max(1, math.ceil(longest / MOST_RANGES))


def by_length(
    source_lengths: ArrayLike,
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str,
    ranges: Sequence[tuple[int, int]] | None = None,
) -> list[dict[str, int | float | None]]:
    """Corpus BLEU (0..100) and exact match (0..1) of each range of source lengths.

    A row: {"from", "to", "sentences", "bleu", "exact_match"}, both ends included. `bleu` is None
    where no reference has a 4-gram: even hypotheses that equal their references would have 0.

    source_lengths: in tokens, `<eos>` not counted.
    ranges: [from, to], of lengths that occur; None chooses about ten round ones.
    """
    lengths = np.asarray(source_lengths, dtype=np.int64)
    bleu = bleu_metric(tokenize)
    if ranges is None:
        ranges = length_buckets(lengths)

    table: list[dict[str, int | float | None]] = []
    for low, high in ranges:
        rows = np.flatnonzero((lengths >= low) & (lengths <= high)).tolist()
        own_hypotheses = [hypotheses[row] for row in rows]
        own_references = [references[row] for row in rows]
        exact = sum(hypotheses[row] == references[row] for row in rows)
        table.append(
            {
                "from": low,
                "to": high,
                "sentences": len(rows),
                "bleu": _bleu_where_defined(bleu, own_hypotheses, own_references),
                "exact_match": exact / len(rows),
            }
        )
    return table


def _bleu_where_defined(
    bleu: BLEU, hypotheses: Sequence[str], references: Sequence[str]
) -> float | None:
    found = bleu.corpus_score(hypotheses, [references])
    # A right 4-gram is one of a reference.
    if found.counts[-1] == 0 and not has_four_grams(references, bleu):
        return None
    return found.score


def has_four_grams(references: Sequence[str], bleu: BLEU) -> bool:
    """Whether any reference has four words, without which BLEU is 0 whatever is written.

    bleu: its tokenizer says what a word is.
    """
    return bool(bleu.corpus_score(references, [references]).totals[-1] > 0)


def text_metrics(tokenize: str, rouge: RougeUnit | None) -> dict[str, CorpusMetric]:
    """All metrics of texts; without ROUGE where it has no unit."""
    metrics: dict[str, CorpusMetric] = {}
    for name, metric in sacrebleu_metrics(tokenize).items():
        metrics[name] = SacrebleuMetric(metric)
    if rouge is not None:
        for key in ROUGE:
            metrics[key] = Rouge(key, rouge)
    metrics["token_error_rate"] = TokenErrorRate()
    metrics["exact_match"] = Share("exact")
    return metrics


def signatures(tokenize: str, rouge: RougeUnit | None = None) -> dict[str, str]:
    """How each metric is computed: sacrebleu's signature, or a few words for the others."""
    library = f"torchmetrics:{torchmetrics.__version__}"
    found = {
        "exact_match": "share of hypotheses equal to their reference to the character",
        "token_error_rate": f"tok:whitespace|case:mixed|{library}",
    }
    if rouge is not None:
        for key in ROUGE:
            found[key] = f"F1|unit:{rouge}|case:lc|stemmer:no|{library}"
    for name, metric in sacrebleu_metrics(tokenize).items():
        # The signature contains the number of references, which sacrebleu knows after a score.
        metric.corpus_score(["one"], [["one"]])
        found[name] = metric.get_signature().format()
    return found


def metrics_of_signatures(signatures: Mapping[str, str]) -> dict[str, CorpusMetric]:
    """The metrics of an evaluation with these signatures.

    BLEU's signature names the tokenisation, and ROUGE's the unit.
    """
    tokenize = re.search(r"(?:^|\|)tok:([^|]+)", signatures.get("bleu", ""))
    unit = re.search(r"\|unit:(word|character)\|", signatures.get("rouge1", ""))
    return text_metrics(
        tokenize=tokenize[1] if tokenize else "13a",
        rouge=unit[1] if unit else None,  # type: ignore[arg-type]
    )


def metrics_of_references(sentences: Sequence[Mapping[str, Any]]) -> dict[str, CorpusMetric]:
    """The metrics with the references as the decoder's input that these records have sums of.

    Records of older evaluations have none.
    """
    metrics: dict[str, CorpusMetric] = {}
    if all("nll" in sentence for sentence in sentences):
        metrics |= {"token_nll": TokenNll(), "perplexity": Perplexity()}
    if all("link_counts" in sentence for sentence in sentences):
        metrics |= ALIGNMENT_METRICS
    return metrics
