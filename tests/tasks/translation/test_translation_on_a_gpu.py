"""A translator on a GPU answers as on a processor. Skipped where there is no GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attnlab.evaluation.explanations import METHODS, relevances
from attnlab.evaluation.gradient_flow import gradient_flow
from attnlab.model.attention.intervention import Intervention
from attnlab.search.greedy import GreedySearch
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.beam_tree import beam
from attnlab.tasks.translation.evaluation import evaluate
from attnlab.tasks.translation.step_numbers import step_numbers

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.fixture(autouse=True)
def plain_float32(monkeypatch):
    """A GPU's recurrences round to TF32 otherwise."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


TEXT = "May 13, 2026"


def assert_close(found: Any, expected: Any) -> None:
    """Compares JSON values; numbers may differ by rounding in float32."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_close(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for left, right in zip(found, expected, strict=True):
            assert_close(left, right)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-4, rel=1e-4)
    else:
        assert found == expected


@pytest.mark.parametrize("question", ["translate", "score", "beam", "step_numbers"])
def test_explorers_answer_on_a_gpu_equals_the_processors(question: str, character_translator):
    ours = character_translator()
    target = analysis.translate(ours, TEXT)["ids"]
    ask = {
        "translate": lambda: analysis.translate(ours, TEXT, Intervention("uniform")),
        "score": lambda: analysis.score(ours, TEXT, target),
        "beam": lambda: beam(ours, TEXT, {"size": 3}),
        "step_numbers": lambda: step_numbers(ours, TEXT, target),
    }[question]
    expected = ask()
    ours.model.to("cuda")
    assert_close(ask(), expected)


def test_evaluation_on_a_gpu_equals_the_processors(tiny_model, copies):
    size = copies.target_tokenizer.size
    model = tiny_model(source_vocabulary_size=size, target_vocabulary_size=size)
    search = GreedySearch(8, 1.5)
    expected = evaluate([model], search, copies)
    found = evaluate([model.to("cuda")], search, copies)
    assert_close(found.metrics, expected.metrics)
    assert [each["hypothesis"] for each in found.sentences] == [
        each["hypothesis"] for each in expected.sentences
    ]


def test_explanations_on_a_gpu_equal_the_processors(tiny_model, copies):
    model = tiny_model()
    batch = copies.split("test").batch(np.arange(4), model.padding)
    expected = relevances(model, batch, METHODS, 4)
    found = relevances(model.to("cuda"), batch.to("cuda"), METHODS, 4)
    for method in METHODS:
        torch.testing.assert_close(found[method].cpu(), expected[method], rtol=1e-8, atol=1e-9)


def test_gradient_flow_on_a_gpu_equals_the_processors(tiny_model, copies):
    model = tiny_model(bidirectional=False)
    batch = copies.split("test").batch(np.arange(4), model.padding)
    expected = gradient_flow(model, [batch])
    found = gradient_flow(model.to("cuda"), [batch.to("cuda")])
    np.testing.assert_allclose(found, expected, rtol=1e-8)
