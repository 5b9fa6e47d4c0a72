"""What a classifier answers, held against the model that it asks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_folders import LABELS, SOURCES, classifier_config

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.patch import Patch
from attnlab.model.classifier import Classifier
from attnlab.model.fast.encoder import FastEncoder
from attnlab.tasks.classification.classifier import SentenceClassifier


@pytest.fixture(params=["pre", "post"])
def classifier(request):
    torch.manual_seed(1)
    tokenizer = WordTrainer(min_frequency=1).train(SOURCES)
    sizes = {"source_vocabulary_size": tokenizer.size, "num_classes": len(LABELS)}
    model = bind(classifier_config(), Classifier, "model")(**sizes, padding=Padding(request.param))
    return SentenceClassifier(model.eval(), tokenizer, LABELS)


def test_loaded_classifier_has_a_sped_up_model(classifier_folder):
    assert isinstance(SentenceClassifier.load(classifier_folder).model.encoder, FastEncoder)


def test_list_gives_each_text_what_it_gets_alone(classifier):
    together = classifier(SOURCES)
    for text, each in zip(SOURCES, together, strict=True):
        alone = classifier(text)
        assert each.text == text
        assert each.label == max(each.probabilities, key=each.probabilities.get) == alone.label
        assert list(each.probabilities) == LABELS
        assert sum(each.probabilities.values()) == pytest.approx(1)
        assert each.tokens == alone.tokens
        assert each.tokens[-1] == "<eos>"
        np.testing.assert_allclose(each.attention, alone.attention, atol=1e-6)
        assert each.attention.sum() == pytest.approx(1)


def test_interventions_change_the_attention_of_a_classifier(classifier):
    plain = classifier(SOURCES[0])
    uniform = classifier(SOURCES[0], intervene=Intervention("uniform"))
    np.testing.assert_allclose(uniform.attention, 1 / len(plain.tokens), atol=1e-6)
    assert uniform.probabilities != plain.probabilities
    hidden = classifier(SOURCES[0], intervene=Intervention(hide=[1]))
    assert hidden.attention[1] == 0
    given = classifier(SOURCES[0], intervene=Intervention(weights={0: plain.attention.tolist()}))
    assert given.probabilities == pytest.approx(plain.probabilities, abs=1e-6)
    with pytest.raises(ExperimentError, match="writes no tokens"):
        classifier("x", intervene=Intervention(force={0: "a"}))
    with pytest.raises(ExperimentError, match="patch goes with models that translate"):
        classifier("x", intervene=Intervention(patch=Patch("y", values={0: 0})))
    with pytest.raises(ExperimentError, match="heads must be below 1"):
        classifier("x", intervene=Intervention("uniform", heads=[2]))


def test_notebook_shows_the_coloured_sentence_escaped(classifier):
    page = classifier(SOURCES[3])._repr_html_()
    assert "집" in page
    assert "<b>" not in page
