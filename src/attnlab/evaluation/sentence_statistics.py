"""Corpus metrics as functions of sums over sentences, for resampling; and sacrebleu's own paired bootstrap.

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
from sacrebleu.significance import PairedTest, Result

from attnlab.data.corpus import RougeUnit
from attnlab.evaluation.text_metrics import ROUGE, Rouge, sacrebleu_metrics

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


class RougeMetric(CorpusMetric):
    """One of `ROUGE`, 0..100: the mean over the texts."""

    def __init__(self, key: str, unit: RougeUnit) -> None:
        self.key, self.unit = key, unit

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        rouge = Rouge(self.unit, (self.key,))
        rouge.update([row["hypothesis"] for row in rows], [[row["reference"]] for row in rows])
        return np.stack([100 * rouge.of_texts(self.key), np.ones(len(rows))], axis=1)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return sums[:, 0] / sums[:, 1]


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

    signatures: of the evaluation; that of BLEU names the tokenisation, those of ROUGE the unit.
    """
    found = re.search(r"(?:^|\|)tok:([^|]+)", signatures.get("bleu", ""))
    of_sacrebleu = sacrebleu_metrics(found[1] if found else "13a")
    metrics: dict[str, CorpusMetric] = {name: SacrebleuMetric(metric) for name, metric in of_sacrebleu.items()}
    if "rouge1" in signatures:
        unit: RougeUnit = "character" if "|unit:character|" in signatures["rouge1"] else "word"
        metrics |= {key: RougeMetric(key, unit) for key in ROUGE}
    return metrics | {"exact_match": Share("exact")}


def classification_metrics(labels: Sequence[str]) -> dict[str, CorpusMetric]:
    """The metrics of `ClassMetrics` that follow from predictions alone."""
    return {"accuracy": Share("correct"), "f1": MacroF1(labels)}


def paired_bootstrap_p(
    metric: BLEU | CHRF | TER,
    baseline: Sequence[str],
    others: Sequence[Sequence[str]],
    references: Sequence[str],
    samples: int,
) -> list[float]:
    """p of sacrebleu's paired bootstrap test for each of `others` against the baseline (Koehn 2004, with the centred
    difference of MultEval, Clark et al. 2011).

    It compares two trained models, not two systems with several seeds.
    The seed of its samples is sacrebleu's (SACREBLEU_SEED, 12345). For equal scores p is 1; sacrebleu
    itself would call them significantly different.
    """
    named = [("baseline", baseline), *((str(number), texts) for number, texts in enumerate(others))]
    _, found = PairedTest(named, {"": metric}, [references], test_type="bs", n_samples=samples)()
    (results,) = (of_metric for name, of_metric in found.items() if name != "System")
    ours, *theirs = (result for result in results if isinstance(result, Result))
    p_values = []
    for result in theirs:
        assert result.p_value is not None
        p_values.append(1.0 if result.score == ours.score else float(result.p_value))
    return p_values
