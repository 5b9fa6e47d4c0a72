"""Corpus metrics as functions of sums over sentences, for resampling.

Axes: N sentences, K sums, B samples of sentences.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF, TER

from attnlab.evaluation.text_metrics import sacrebleu_metrics

Rows = Sequence[Mapping[str, Any]]
"""Lines of hypotheses.jsonl or predictions.jsonl."""


class CorpusMetric(ABC):
    """A metric of any sample of sentences; each sentence is counted once."""

    @abstractmethod
    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        """(N, K), a row for each sentence."""

    @abstractmethod
    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """(B, K) sums over the sentences of a sample -> (B,) the metric of each sample."""


class SacrebleuMetric(CorpusMetric):
    """BLEU, chrF or TER by sacrebleu's own statistics and formulas, as `sacrebleu.significance` uses them."""

    def __init__(self, metric: BLEU | CHRF | TER) -> None:
        self.metric = metric

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        hypotheses, references = ([row[side] for row in rows] for side in ("hypothesis", "reference"))
        return np.array(self.metric._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([self.metric._compute_score_from_stats(row).score for row in sums.tolist()])


class Share(CorpusMetric):
    """The share of sentences, 0..1, of which `key` is true."""

    def __init__(self, key: str) -> None:
        self.key = key

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        return np.array([[float(row[self.key]), 1.0] for row in rows])

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return sums[:, 0] / sums[:, 1]


class MacroF1(CorpusMetric):
    """F1 of each class, mean over the classes that occur among labels or predictions; 0..1."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.places = {label: place for place, label in enumerate(labels)}

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        identity = np.eye(len(self.places))
        predicted, actual = (identity[[self.places[row[key]] for row in rows]] for key in ("prediction", "label"))
        return np.concatenate([predicted * actual, predicted + actual], axis=1)  # (N, 2 C)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        hits, sizes = np.split(sums, 2, axis=1)  # (B, C): 2 hits / (predicted + actual) is the F1 of a class
        of_classes = np.divide(2 * hits, sizes, out=np.zeros_like(hits), where=sizes > 0)
        return of_classes.sum(axis=1) / (sizes > 0).sum(axis=1)


def translation_metrics(signatures: Mapping[str, str]) -> dict[str, CorpusMetric]:
    """The metrics of `TextMetrics`.

    signatures: of the evaluation; that of BLEU names the tokenisation.
    """
    found = re.search(r"(?:^|\|)tok:([^|]+)", signatures.get("bleu", ""))
    of_sacrebleu = sacrebleu_metrics(found[1] if found else "13a")
    return {name: SacrebleuMetric(metric) for name, metric in of_sacrebleu.items()} | {"exact_match": Share("exact")}


def classification_metrics(labels: Sequence[str]) -> dict[str, CorpusMetric]:
    """The metrics of `ClassMetrics` that follow from predictions alone."""
    return {"accuracy": Share("correct"), "f1": MacroF1(labels)}
