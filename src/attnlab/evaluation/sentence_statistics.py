"""The metrics of attnlab as functions of sums over sentences, for resampling.

Axes: N sentences, K sums, B samples of sentences.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF, TER
from torchmetrics.functional.text import word_error_rate
from torchmetrics.text.rouge import ROUGEScore

from attnlab.data.corpus import RougeUnit
from attnlab.evaluation.corpus_metric import CorpusMetric, MeanOfSentences, Rows


class SacrebleuMetric(CorpusMetric):
    """BLEU, chrF or TER by sacrebleu's own statistics and formulas.

    `sacrebleu.significance` resamples by the same two methods; sacrebleu has no public ones.
    """

    def __init__(self, metric: BLEU | CHRF | TER) -> None:
        self.metric = metric
        # sacrebleu does not say how many statistics a metric has, so count those of a sentence.
        empty_sentence = {"hypothesis": "", "reference": ""}
        self.sums = self.statistics([empty_sentence]).shape[1]

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        hypotheses = [row["hypothesis"] for row in rows]
        references = [row["reference"] for row in rows]
        found = self.metric._extract_corpus_statistics(hypotheses, [references])
        return np.array(found, dtype=np.float64)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = []
        for sums_of_sample in sums.tolist():
            scores.append(self.metric._compute_score_from_stats(sums_of_sample).score)
        return np.array(scores)


class Share(MeanOfSentences):
    """The share of sentences, 0..1, of which `key` is true."""

    def __init__(self, key: str) -> None:
        self.key = key

    def sentence_values(self, rows: Rows) -> Sequence[float]:
        return [float(row[self.key]) for row in rows]


class TokenErrorRate(CorpusMetric):
    """Edits of tokens between white space, for each 100 tokens of the references.

    Edits are insertions, deletions and substitutions. Of words it is the word error rate of speech
    recognition, of phones the phone error rate.
    """

    sums = 2

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        statistics = []
        for row in rows:
            tokens = len(row["reference"].split())
            rate = 0.0
            if row["reference"]:
                rate = float(word_error_rate(row["hypothesis"], row["reference"]))
            # A rate is in float32: rounded, its product with the length is the number of edits.
            statistics.append([np.round(rate * tokens), tokens])
        return np.array(statistics, dtype=np.float64)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return 100 * sums[:, 0] / sums[:, 1]


class TokenNll(CorpusMetric):
    """Negative log-likelihood of a reference's token in nats, mean over all target tokens."""

    better = "↓"
    sums = 2

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        return np.array([[row["nll"], row["target_tokens"]] for row in rows], dtype=np.float64)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return sums[:, 0] / sums[:, 1]


class Perplexity(TokenNll):
    """exp of `TokenNll`."""

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.exp(super().scores(sums))


class LengthRatio(CorpusMetric):
    """Tokens of the hypotheses for each token of the references, split at white space."""

    label = "length ratio"
    better = ""
    digits = 3
    meaning = "tokens of the hypotheses for each of the references, summed over the corpus"
    least = 0.0
    sums = 2

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        lengths = [(len(row["hypothesis"].split()), len(row["reference"].split())) for row in rows]
        return np.array(lengths, dtype=np.float64).reshape(len(rows), self.sums)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return sums[:, 0] / sums[:, 1]


ROUGE = ("rouge1", "rouge2", "rougeL")


class Rouge(MeanOfSentences):
    """ROUGE-1, -2 or -L (Lin 2004) through torchmetrics, 0..100.

    F1 of the words, of the pairs of words, or of the longest common subsequence of words.
    Words are runs of letters, digits and the marks on them in small letters, as in Google's
    rouge_score without its stemmer, but of every script. A text is not split into sentences (that
    would be ROUGE-Lsum).

    key: one of `ROUGE`.
    unit: `word`, or `character` for each letter or digit alone, for scripts without spaces or with
        long words.
    """

    def __init__(self, key: str, unit: RougeUnit) -> None:
        self.key = key
        self.unit = unit

    def sentence_values(self, rows: Rows) -> Sequence[float]:
        rouge = ROUGEScore(
            normalizer=_letters_and_digits,
            tokenizer=str.split if self.unit == "word" else _characters,
            rouge_keys=self.key,
        )
        hypotheses = [row["hypothesis"] for row in rows]
        references = [[row["reference"]] for row in rows]
        rouge.update(hypotheses, references)
        f_measures = getattr(rouge, f"{self.key}_fmeasure")
        return [100 * float(value) for value in f_measures]


def _characters(text: str) -> list[str]:
    return list(text.replace(" ", ""))


def _letters_and_digits(text: str) -> str:
    """The text in small letters, with a space in place of all but letters, marks and digits."""
    kept = []
    for character in unicodedata.normalize("NFC", text).lower():
        general_category = unicodedata.category(character)[0]
        kept.append(character if general_category in "LMN" else " ")
    return "".join(kept)


class MacroF1(CorpusMetric):
    """F1 of each class, mean over the classes that occur among labels or predictions; 0..1."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.places = {label: place for place, label in enumerate(labels)}
        self.sums = 2 * len(labels)

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        predicted = self._one_hot(row["prediction"] for row in rows)
        actual = self._one_hot(row["label"] for row in rows)
        return np.concatenate([predicted * actual, predicted + actual], axis=1)  # (N, 2 C)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        hits, sizes = np.split(sums, 2, axis=1)  # (B, C) each
        occurs = sizes > 0
        # The F1 of a class is 2 hits / (predicted + actual).
        f1 = np.divide(2 * hits, sizes, out=np.zeros_like(hits), where=occurs)
        return f1.sum(axis=1) / occurs.sum(axis=1)

    def _one_hot(self, labels: Iterable[str]) -> NDArray[np.float64]:
        """(N, C)"""
        places = [self.places[label] for label in labels]
        return np.eye(len(self.places))[places]


def sacrebleu_metrics(tokenize: str) -> dict[str, BLEU | CHRF | TER]:
    """BLEU without smoothing, chrF2 and TER.

    tokenize: of BLEU.
    """
    return {"bleu": bleu_metric(tokenize), "chrf": CHRF(), "ter": TER()}


def bleu_metric(tokenize: str) -> BLEU:
    """BLEU without smoothing."""
    return BLEU(tokenize=tokenize, smooth_method="none", force=True)
