"""Metrics from sums over sentences equal the metrics themselves.

This holds for the corpus and for any sample of it.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from attnlab.data.corpus import RougeUnit
from attnlab.evaluation.sentence_statistics import (
    SacrebleuMetric,
    sacrebleu_metrics,
)
from attnlab.tasks.classification.metrics import ClassMetrics, sentence_metrics
from attnlab.tasks.translation.metrics import TextMetrics, metrics_of_signatures, signatures

SOME = "오늘 어제 학교에 고양이가 나는 갔다. the cat sat on a mat , . don't 3.5 日本語"
WORDS = SOME.split()


def sentences(count: int = 60) -> tuple[list[str], list[str]]:
    draw = random.Random(4)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(1, 12))) for _ in range(count)]
    hypotheses = []
    for reference in references:
        words = [word if draw.random() < 0.8 else draw.choice(WORDS) for word in reference.split()]
        hypotheses.append(" ".join(words) + " " * (draw.random() < 0.2))
    return ["", *hypotheses], ["the cat sat", *references]


def rows(hypotheses: list[str], references: list[str]) -> list[dict[str, object]]:
    return [
        {"hypothesis": ours, "reference": theirs, "exact": ours == theirs}
        for ours, theirs in zip(hypotheses, references, strict=True)
    ]


def check_scores(
    found: dict[str, float],
    hypotheses: list[str],
    references: list[str],
    tokenize: str,
    rouge: RougeUnit | None,
) -> None:
    """They are those of `TextMetrics`, and of sacrebleu where it has them."""
    evaluated = TextMetrics(tokenize, rouge=rouge)
    evaluated.update(hypotheses, references)
    assert found == pytest.approx(evaluated.compute(), rel=1e-6)
    for name, metric in sacrebleu_metrics(tokenize).items():
        theirs = metric.corpus_score(hypotheses, [references]).score
        assert found[name] == pytest.approx(theirs, abs=1e-9), name


@pytest.mark.parametrize(
    ("tokenize", "rouge"), [("13a", None), ("none", "word"), ("char", "character")]
)
@pytest.mark.parametrize("of_a_sample", [False, True])
def test_corpus_metrics_equal_text_metrics_and_sacrebleu(
    of_a_sample: bool, tokenize: str, rouge: RougeUnit | None
) -> None:
    """Of the corpus, and of sentences drawn from it."""
    hypotheses, references = sentences()
    chosen = np.arange(len(hypotheses))
    if of_a_sample:
        chosen = np.random.default_rng(0).integers(len(hypotheses), size=len(hypotheses))
    counts = np.bincount(chosen, minlength=len(hypotheses)).astype(float)
    found = {}
    for name, metric in metrics_of_signatures(signatures(tokenize, rouge)).items():
        (found[name],) = metric.scores(
            (counts @ metric.statistics(rows(hypotheses, references)))[None]
        )
    check_scores(
        found, [hypotheses[i] for i in chosen], [references[i] for i in chosen], tokenize, rouge
    )


@pytest.mark.parametrize(
    ("signature", "tokenize"),
    [
        ("", "13a"),
        ("nrefs:1|case:mixed|tok:char|smooth:none", "char"),
        ("tok:none|smooth:none", "none"),
    ],
)
def test_translation_metrics_tokenise_as_the_signature_says(signature: str, tokenize: str) -> None:
    given = rows(*sentences())
    metrics = metrics_of_signatures({"bleu": signature} if signature else {})
    found = metrics["bleu"].statistics(given)
    np.testing.assert_array_equal(
        found, SacrebleuMetric(sacrebleu_metrics(tokenize)["bleu"]).statistics(given)
    )


def test_classification_metrics_equal_hand_counts() -> None:
    draw = np.random.default_rng(1)
    labels = draw.integers(4, size=50)
    taken = np.where(draw.random(50) < 0.6, labels, draw.integers(3, size=50))
    evaluated = ClassMetrics(5)  # the fifth class never occurs, and counts neither here nor there
    evaluated.update(
        torch.log(torch.nn.functional.one_hot(torch.tensor(taken), 5) + 1e-9), torch.tensor(labels)
    )
    expected = evaluated.compute()
    predictions = [
        {"label": str(label), "prediction": str(ours), "correct": bool(label == ours)}
        for label, ours in zip(labels, taken, strict=True)
    ]
    for name, metric in sentence_metrics([str(number) for number in range(5)]).items():
        (score,) = metric.scores(metric.statistics(predictions).sum(axis=0, keepdims=True))
        assert score == pytest.approx(float(expected[name]), rel=1e-6), name
