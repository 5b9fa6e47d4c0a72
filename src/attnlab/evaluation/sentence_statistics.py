"""Corpus metrics as functions of sums over sentences, for resampling.

Axes: N sentences, K sums, B samples of sentences.
"""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torchmetrics
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF, TER
from torchmetrics.functional.text import word_error_rate
from torchmetrics.text.rouge import ROUGEScore

from attnlab.data.corpus import RougeUnit

Rows = Sequence[Mapping[str, Any]]
"""Lines of hypotheses.jsonl or predictions.jsonl."""


class CorpusMetric(ABC):
    """A metric of any sample of sentences; each sentence is counted once.

    sums: K.
    """

    sums: int

    @abstractmethod
    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        """(N, K), a row for each sentence."""

    @abstractmethod
    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """(B, K) sums over the sentences of a sample -> (B,) the metric of each sample."""


class SacrebleuMetric(CorpusMetric):
    """BLEU, chrF or TER by sacrebleu's own statistics and formulas, as `sacrebleu.significance`
    uses them.
    """

    def __init__(self, metric: BLEU | CHRF | TER) -> None:
        self.metric = metric
        self.sums = self.statistics([{"hypothesis": "", "reference": ""}]).shape[1]

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        hypotheses, references = (
            [row[side] for row in rows] for side in ("hypothesis", "reference")
        )
        return np.array(
            self.metric._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64
        )

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([self.metric._compute_score_from_stats(row).score for row in sums.tolist()])


class MeanOfSentences(CorpusMetric):
    """The mean of a number of each sentence."""

    sums = 2

    @abstractmethod
    def of_sentences(self, rows: Rows) -> Sequence[float]:
        """(N,)"""

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        return np.array([[value, 1.0] for value in self.of_sentences(rows)])

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return sums[:, 0] / sums[:, 1]


class Share(MeanOfSentences):
    """The share of sentences, 0..1, of which `key` is true."""

    def __init__(self, key: str) -> None:
        self.key = key

    def of_sentences(self, rows: Rows) -> Sequence[float]:
        return [float(row[self.key]) for row in rows]


class TokenErrorRate(CorpusMetric):
    """Insertions, deletions and substitutions of tokens between white space, for each 100 tokens of
    the references.

    Of words it is the word error rate of speech recognition, of phones the phone error rate.
    """

    sums = 2

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        tokens = np.array([len(row["reference"].split()) for row in rows], dtype=np.float64)
        rates = [
            float(word_error_rate(row["hypothesis"], row["reference"])) if row["reference"] else 0
            for row in rows
        ]
        return np.stack([np.round(rates * tokens), tokens], axis=1)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return 100 * sums[:, 0] / sums[:, 1]


ROUGE = ("rouge1", "rouge2", "rougeL")


class Rouge(MeanOfSentences):
    """ROUGE-1, -2 or -L (Lin 2004) through torchmetrics, 0..100: F1 of the words, of the pairs of
    words, or of the longest common subsequence of words.

    Words are runs of letters, digits and the marks on them in small letters, as in Google's
    rouge_score without its stemmer, but of every script. A text is not split into sentences (that
    would be ROUGE-Lsum).

    key: one of `ROUGE`.
    unit: `word`, or `character` for each letter or digit alone, for scripts without spaces or with
        long words.
    """

    def __init__(self, key: str, unit: RougeUnit) -> None:
        self.key, self.unit = key, unit

    def of_sentences(self, rows: Rows) -> Sequence[float]:
        split = str.split if self.unit == "word" else lambda text: [*text.replace(" ", "")]
        rouge = ROUGEScore(normalizer=_letters, tokenizer=split, rouge_keys=self.key)
        rouge.update([row["hypothesis"] for row in rows], [[row["reference"]] for row in rows])
        return [100 * float(value) for value in getattr(rouge, f"{self.key}_fmeasure")]


def _letters(text: str) -> str:
    composed = unicodedata.normalize("NFC", text).lower()
    return "".join(each if unicodedata.category(each)[0] in "LMN" else " " for each in composed)


class MacroF1(CorpusMetric):
    """F1 of each class, mean over the classes that occur among labels or predictions; 0..1."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.places = {label: place for place, label in enumerate(labels)}
        self.sums = 2 * len(labels)

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        identity = np.eye(len(self.places))
        predicted, actual = (
            identity[[self.places[row[key]] for row in rows]] for key in ("prediction", "label")
        )
        return np.concatenate([predicted * actual, predicted + actual], axis=1)  # (N, 2 C)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        # (B, C): 2 hits / (predicted + actual) is the F1 of a class
        hits, sizes = np.split(sums, 2, axis=1)
        of_classes = np.divide(2 * hits, sizes, out=np.zeros_like(hits), where=sizes > 0)
        return of_classes.sum(axis=1) / (sizes > 0).sum(axis=1)


def sacrebleu_metrics(tokenize: str) -> dict[str, BLEU | CHRF | TER]:
    """BLEU without smoothing, chrF2 and TER.

    tokenize: of BLEU.
    """
    return {
        "bleu": BLEU(tokenize=tokenize, smooth_method="none", force=True),
        "chrf": CHRF(),
        "ter": TER(),
    }


def text_metrics(tokenize: str, rouge: RougeUnit | None) -> dict[str, CorpusMetric]:
    """All metrics of texts; without ROUGE where it has no unit."""
    metrics: dict[str, CorpusMetric] = {
        name: SacrebleuMetric(metric) for name, metric in sacrebleu_metrics(tokenize).items()
    }
    of_rouge = {} if rouge is None else {key: Rouge(key, rouge) for key in ROUGE}
    return (
        metrics | of_rouge | {"token_error_rate": TokenErrorRate(), "exact_match": Share("exact")}
    )


def signatures(tokenize: str, rouge: RougeUnit | None = None) -> dict[str, str]:
    """sacrebleu's signature strings for `bleu`, `chrf` and `ter`, and a few words for the
    others.
    """
    written = {
        "exact_match": "share of hypotheses equal to their reference to the character",
        "token_error_rate": f"tok:whitespace|case:mixed|torchmetrics:{torchmetrics.__version__}",
    }
    if rouge is not None:
        written |= dict.fromkeys(
            ROUGE, f"F1|unit:{rouge}|case:lc|stemmer:no|torchmetrics:{torchmetrics.__version__}"
        )
    for name, metric in sacrebleu_metrics(tokenize).items():
        metric.corpus_score(["one"], [["one"]])  # the signature contains the number of references
        written[name] = metric.get_signature().format()
    return written


def translation_metrics(signatures: Mapping[str, str]) -> dict[str, CorpusMetric]:
    """The metrics of an evaluation with these signatures, where that of BLEU names the tokenisation
    and that of
    ROUGE the unit.
    """
    found = re.search(r"(?:^|\|)tok:([^|]+)", signatures.get("bleu", ""))
    unit = re.search(r"\|unit:(word|character)\|", signatures.get("rouge1", ""))
    return text_metrics(found[1] if found else "13a", unit and unit[1])  # type: ignore[arg-type]


def classification_metrics(labels: Sequence[str]) -> dict[str, CorpusMetric]:
    """The metrics of `ClassMetrics` that follow from predictions alone."""
    return {"accuracy": Share("correct"), "f1": MacroF1(labels)}
