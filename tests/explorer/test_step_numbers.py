"""The numbers of a step, put together again by the formula."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.explorer import analysis
from attnlab.explorer.analysis import Edit
from attnlab.explorer.step_numbers import step_numbers

TEXT = "May 13"
SCORES = ["dot", "scaled_dot", "general", "scaled_luong", "concat", "bahdanau", "normed_bahdanau", "cosine", "location"]


PRODUCTS = ["dot", "scaled_dot", "general", "scaled_luong", "cosine"]


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend"])
@pytest.mark.parametrize(
    ("score", "projection"), [(each, size) for each in SCORES for size in (None, 3) if (each, size) != ("location", 3)]
)
def test_numbers_follow_from_each_other(translator, score, projection, decoder):
    ours = translator(attention=score, decoder=decoder, projection=projection)
    target = analysis.score(ours, TEXT, "3월 1일")["ids"]
    shown = step_numbers(ours, TEXT, target, edit=Edit(behind=2))
    (head,) = shown["heads"]
    energies, visible = np.array(head["energies"]), np.array(head["visible"])
    assert energies.shape == (len(target), 9)
    assert np.array(head["keys"]).ndim == np.array(head["query"]).ndim == 2
    assert not visible[:, -2:].any()
    assert visible[:, :-2].all()
    powers = np.where(visible, np.exp(energies - energies.max()), 0)
    np.testing.assert_allclose(head["weights"], powers / powers.sum(1, keepdims=True), atol=1e-4)
    np.testing.assert_allclose(head["context"], np.array(head["weights"]) @ np.array(head["values"]), atol=1e-4)
    np.testing.assert_allclose(shown["attention"], head["weights"], atol=1e-5)
    assert ("projected_query" in head) == (projection is not None)
    if score in PRODUCTS:
        np.testing.assert_allclose(energies, products(head, score), atol=1e-3)


@pytest.mark.parametrize("score", PRODUCTS)
def test_energy_of_a_product_counts_the_coverage_shown(translator, score):
    ours = translator(attention=score, coverage=1.0, projection=3, heads=2)
    shown = step_numbers(ours, TEXT, analysis.score(ours, TEXT, "3월 1일")["ids"])
    for head in shown["heads"]:
        coverage = np.cumsum(np.array(head["weights"]), axis=0) - np.array(head["weights"])
        np.testing.assert_allclose(head["coverage"], coverage, atol=1e-4)
        np.testing.assert_allclose(head["energies"], products(head, score), atol=1e-3)


def products(head, score):
    """The energies (T, S) by the formula, of the query, keys, coverage and g that a page shows."""
    query = np.array(head.get("projected_query", head["query"]))[:, None]
    keys = np.array(head["keys"])[None]
    if "coverage" in head:
        keys = keys + np.array(head["coverage"])[..., None] * np.array(head["coverage_weight"])
    scale = head.get("g", 1 / np.sqrt(keys.shape[-1]) if score == "scaled_dot" else 1)
    if score == "cosine":
        query, keys = (each / np.linalg.norm(each, axis=-1, keepdims=True).clip(1e-12) for each in (query, keys))
    return scale * (query * keys).sum(-1)


@pytest.mark.parametrize(
    "choices",
    [
        {"coverage": 1.0},
        {"heads": 2},
        {"scope": "local_p"},
        {"scope": "local_m"},
        {"decoder": "step_then_attend", "input_feeding": "attentional_hidden"},
    ],
)
def test_numbers_of_other_mechanisms_average_to_the_attention(translator, choices):
    ours = translator(**choices)
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
