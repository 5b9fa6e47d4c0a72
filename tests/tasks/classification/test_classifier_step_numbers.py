"""The numbers of a classifier's look, each from those that it names, and the end from the model."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from recomputed import RECOMPUTED

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.data.trainers import WordTrainer
from attnlab.model.attention.attention import MultiHeadAttention
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.scaled_dot import ScaledDotScore
from attnlab.model.classifier import Classifier
from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.gates import ElementwiseGate, PerHeadGate
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.scopes import GlobalScope, LocalP
from attnlab.tasks.classification.analysis import classify
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.classification.step_numbers import step_numbers
from attnlab.tasks.edited_source import Edit

TEXT = "good film"
HEADS = Part(MultiHeadAttention, heads=2, size=3)


def classifier_of(score, scope, heads, labels, gate=None, query="sentence") -> SentenceClassifier:
    torch.manual_seed(1)
    rates = ("word_dropout", "dropout", "layer_dropout", "output_dropout")
    sizes = {"embedding_size": 5, "hidden_size": 4, "layers": 1} | dict.fromkeys(rates, 0.0)
    way = {"cell": "lstm", "bidirectional": True, "merge": "concatenate", "reverse_source": False}
    tokenizer = WordTrainer(min_frequency=1).train(["good film", "bad <b> film"])
    model = Classifier(
        Part(RecurrentEncoder, **sizes, **way),
        score,
        None,
        Part(Softmax),
        scope,
        heads,
        dense_size=6,
        dropout=0.0,
        gate=gate,
        query=query,
        source_vocabulary_size=tokenizer.size,
        num_classes=len(labels),
        padding=Padding(),
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 3
    return SentenceClassifier(model.eval(), tokenizer, labels)


@pytest.mark.parametrize("masking", ["before", "after"])
@pytest.mark.parametrize(
    "labels", [["bad", "good"], ["bad", "so-so", "good"]], ids=["two", "three"]
)
@pytest.mark.parametrize(
    ("score", "scope", "heads", "gate", "query"),
    [
        (Part(BahdanauScore, size=5, bias=True), Part(GlobalScope), None, None, "sentence"),
        (Part(ScaledDotScore), Part(GlobalScope), HEADS, None, "sentence"),
        (Part(BahdanauScore, size=5), Part(LocalP, width=2), None, None, "sentence"),
        (Part(BahdanauScore, size=5), Part(GlobalScope), None, Part(ElementwiseGate), "sentence"),
        (Part(ScaledDotScore), Part(GlobalScope), HEADS, Part(PerHeadGate), "sentence"),
        (Part(BahdanauScore, size=5), Part(GlobalScope), None, None, "learned"),
    ],
    ids=["keras", "heads", "local", "gate", "gated heads", "learned query"],
)
def test_numbers_follow_and_end_with_the_probabilities(
    score, scope, heads, gate, query, labels, masking
):
    ours = classifier_of(score, scope, heads, labels, gate, query)
    edit = Edit(before=1, behind=2)
    shown = step_numbers(ours, TEXT, edit=edit, masking=masking)
    json.dumps(shown, allow_nan=False)
    values = {
        each["id"]: np.array(
            [-np.inf if number is None else number for number in np.ravel(each["values"])]
        ).reshape(np.shape(each["values"]))
        for each in shown["symbols"]
    }
    for record in shown["symbols"]:
        if record["made_from"] is None:
            continue
        settings = dict(record["made_from"])
        operation, of = settings.pop("op"), settings.pop("of")
        again = RECOMPUTED[operation](*(values[name] for name in of), **settings)
        # The numbers that it is made of are rounded.
        np.testing.assert_allclose(
            values[record["id"]], again, rtol=1e-5, atol=2e-5, err_msg=record["id"]
        )

    found = classify(ours, TEXT, edit=edit)
    names = ["α"] if heads is None else ["α^(0)", "α^(1)"]
    weights = np.mean([values[name] for name in names], axis=0)
    probabilities = list(found["probabilities"].values())
    last = probabilities[1:] if len(labels) == 2 else probabilities
    if masking == "before":
        np.testing.assert_allclose(weights, found["attention"], atol=2e-6)
        np.testing.assert_allclose(values["p"], last, atol=2e-6)
    else:
        assert not weights[[0, -2, -1]].any()
        assert weights.sum() < 1


def test_changed_weights_are_those_of_the_model(review_classifier):
    intervene = Intervention("uniform")
    shown = step_numbers(review_classifier, TEXT, intervene)
    symbols = {record["id"]: record for record in shown["symbols"]}
    assert symbols["α"]["made_from"]["op"] == "change"
    found = classify(review_classifier, TEXT, intervene)
    np.testing.assert_allclose(symbols["α"]["values"], found["attention"], atol=2e-6)
    np.testing.assert_allclose(symbols["p"]["values"], [found["probabilities"]["good"]], atol=2e-6)
