"""The analysis of a classifier for the explorer's page, as a dict that JSON can hold."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from attnlab.data.prepared import LabelledData
from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.classification.sentence_losses import score_sentences
from attnlab.tasks.classification.step_numbers import step_numbers
from attnlab.tasks.edited_source import NO_EDIT, Edit, Source, rounded, score_name
from attnlab.tasks.predictor import ExplorerPage
from attnlab.tasks.requests import NO_CHANGE


@torch.no_grad()
def classify(
    classifier: SentenceClassifier,
    text: str,
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
) -> dict[str, Any]:
    """The probability of each class and the weight of each token.

    Returns source (S tokens, pads among them), label, probabilities by class, and attention (S).

    Raises ExperimentError for whatever does not fit the model or the text.
    """
    source = Source.read(classifier, text, edit, intervene)
    batch = source.batch([])
    found = classifier.model(batch.source, batch.source_mask, intervene)
    class_probabilities = found.log_probabilities[0].exp().tolist()
    probabilities = dict(zip(classifier.labels, class_probabilities, strict=True))
    return {
        "source": source.tokens,
        "label": max(classifier.labels, key=lambda label: probabilities[label]),
        "probabilities": probabilities,
        "attention": rounded(found.attention_weights[0]),
    }


def page_of(classifier: SentenceClassifier) -> ExplorerPage:
    """What the explorer's page shows of a classifier."""
    parts = {
        "score": score_name(classifier.model.attention),
        "labels": classifier.labels,
        "masks_pads": classifier.padding.attention_masked,
    }
    return ExplorerPage(
        kind="classification",
        example=classifier.example,
        parts=parts,
        analyses={"classify": classify, "step_numbers": step_numbers},
        reads=LabelledData,
        score_sentences=partial(score_sentences, classifier),
    )
