"""The numbers of a step, put together again by the formula."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.analysis import Edit
from attnlab.tasks.translation.step_numbers import step_numbers

TEXT = "May 13"
SCORES = [
    "dot",
    "scaled_dot",
    "general",
    "scaled_luong",
    "concat",
    "bahdanau",
    "normed_bahdanau",
    "cosine",
]
BY_POSITION = ["location", "uniform"]
PRODUCTS = ["dot", "scaled_dot", "general", "scaled_luong", "cosine"]
PROJECTIONS = [{}, {"projection": 3}, {"projection": 3, "coverage": 1.0}]


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend"])
@pytest.mark.parametrize(
    ("score", "choices"),
    [*product(SCORES, PROJECTIONS), *((score, {}) for score in BY_POSITION)],
)
def test_numbers_follow_from_each_other(character_translator, score, choices, decoder):
    ours = character_translator(attention=score, decoder=decoder, **choices)
    target = analysis.score(ours, TEXT, "3월 1일")["ids"]
    shown = step_numbers(ours, TEXT, target, edit=Edit(behind=2))
    (head,) = shown["heads"]
    energies, visible, weights = (
        np.array(head[name]) for name in ("energies", "visible", "weights")
    )
    assert energies.shape == (len(target), 9)
    assert np.array(head["keys"]).ndim == np.array(head["query"]).ndim == 2
    assert not visible[:, -2:].any()
    assert visible[:, :-2].all()
    powers = np.where(visible, np.exp(energies - energies.max()), 0)
    np.testing.assert_allclose(weights, powers / powers.sum(1, keepdims=True), atol=1e-4)
    np.testing.assert_allclose(head["context"], weights @ np.array(head["values"]), atol=1e-4)
    np.testing.assert_allclose(shown["attention"], weights, atol=1e-5)
    assert ("projected_query" in head) == ("projection" in choices)
    query, keys = (
        np.array(head[name]) for name in ("projected_query" if choices else "query", "keys")
    )
    if "coverage" in choices:
        np.testing.assert_allclose(head["coverage"], weights.cumsum(0) - weights, atol=1e-4)
        keys = keys + np.array(head["coverage"])[..., None] * np.array(head["coverage_weight"])
    if score == "cosine":
        query, keys = (
            each / np.linalg.norm(each, axis=-1, keepdims=True).clip(1e-12)
            for each in (query, keys)
        )
    if score in PRODUCTS:
        scale = head.get("g", keys.shape[-1] ** -0.5 if score == "scaled_dot" else 1)
        np.testing.assert_allclose(energies, scale * (query[:, None] * keys).sum(-1), atol=1e-3)


@pytest.mark.parametrize(
    "choices",
    [
        {"heads": 2},
        {"scope": "local_p"},
        {"scope": "local_m"},
        {"decoder": "step_then_attend", "input_feeding": "attentional_hidden"},
    ],
)
def test_numbers_of_other_mechanisms_average_to_the_attention(character_translator, choices):
    ours = character_translator(**choices)
    target = analysis.score(ours, TEXT, "3월 1일")["ids"]
    shown = step_numbers(ours, TEXT, target)
    assert shown["log_probs"] == analysis.score(ours, TEXT, target)["log_probs"]
    mean = np.mean([head["weights"] for head in shown["heads"]], axis=0)
    np.testing.assert_allclose(shown["attention"], mean, atol=1e-5)
    for head in shown["heads"]:
        assert not np.array(head["weights"])[~np.array(head["visible"])].any()
        if choices.get("scope") == "local_p":
            powers = np.where(head["visible"], np.exp(head["energies"]), 0)
            weights = powers / powers.sum(1, keepdims=True) * np.array(head["emphasis"])
            np.testing.assert_allclose(head["weights"], weights, atol=1e-5)
