"""The sentences of a test split with their loss and class under a model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from attnlab.data.prepared import LabelledData
from attnlab.errors import ExperimentError, show
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.predictor import ScoredSentences

SENTENCES_TOGETHER = 32  # so few that a person who asks in between hardly waits


def score_sentences(classifier: SentenceClassifier, data: LabelledData) -> ScoredSentences:
    """All sentences of the test split, in its order.

    Returns:
        of each sentence its `row`, `text`, `label` (the true class), `prediction`, `probability`
        (of the prediction), `loss` (the negative log-likelihood of the label, in nats) and
        `correct`.

    Raises ExperimentError for data with a class that the model does not know.
    """
    unknown = [label for label in data.labels if label not in classifier.labels]
    if unknown:
        raise ExperimentError(
            f"--data {data.folder} has the class {show(unknown[0])}, but the model knows "
            f"{show(classifier.labels)}; leave it out"
        )
    return ScoredSentences(len(data.split("test")), _batches(classifier, data))


def _batches(classifier: SentenceClassifier, data: LabelledData) -> Iterator[list[dict[str, Any]]]:
    split = data.split("test")
    rows = iter(range(len(split)))
    while batch := list(itertools.islice(rows, SENTENCES_TOGETHER)):
        texts = [split.source_text(row) for row in batch]
        answers = classifier.stream(texts, batch_size=SENTENCES_TOGETHER)

        sentences = []
        for row, answer in zip(batch, answers, strict=True):
            label = data.labels[split.labels[row]]
            sentence = {
                "row": row,
                "text": answer.text,
                "label": label,
                "prediction": answer.label,
                "probability": answer.probabilities[answer.label],
                "loss": -answer.log_probabilities[label],
                "correct": answer.label == label,
            }
            sentences.append(sentence)
        yield sentences
