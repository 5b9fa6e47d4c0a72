"""The ascent to the weights that make a token likeliest."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.errors import ExperimentError
from attnlab.explorer import analysis
from attnlab.explorer.likeliest_weights import likeliest_weights
from attnlab.model.attention.intervention import Intervention

TEXT = "May 13"
CHOICES = [
    {},
    {"attention": "dot", "decoder": "step_then_attend", "input_feeding": "attentional_hidden"},
    {"attention": "general", "normaliser": "sparsemax", "cell": "lstm"},
    {"coverage": 1.0},
]


@pytest.mark.parametrize("choices", CHOICES)
@pytest.mark.parametrize("step", [0, 1])
def test_ascent_never_lowers_the_probability_and_stays_on_the_simplex(translator, choices, step):
    ours = translator(**choices)
    base = analysis.score(ours, TEXT, "3월 1일")
    token = base["likeliest"][step][1][1]
    found = likeliest_weights(ours, TEXT, base["ids"], step, token)
    weights, trace = np.array(found["weights"]), found["log_probs"]
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-4)
    assert trace == sorted(trace)
    assert trace[-1] > trace[0]
    # What it promises is what the model does under these weights.
    target = [*base["ids"][:step], token]
    under = analysis.score(ours, TEXT, target, Intervention(weights={step: found["weights"]}))
    assert under["log_probs"][step] == pytest.approx(trace[-1], abs=1e-3)
    assert analysis.score(ours, TEXT, target)["log_probs"][step] == pytest.approx(trace[0], abs=1e-5)


def test_ascent_beats_a_hundred_random_weights(translator):
    ours = translator()
    base = analysis.score(ours, TEXT, "3월 1일")
    target, random = base["ids"][:2], np.random.default_rng(1)
    reached = likeliest_weights(ours, TEXT, target, 1)["log_probs"][-1]
    rows = random.dirichlet(np.full(len(base["source"]), 0.3), size=100)
    tried = [analysis.score(ours, TEXT, target, Intervention(weights={1: row}))["log_probs"][1] for row in rows]
    assert reached >= max(tried) - 1e-4


@pytest.mark.parametrize(
    ("choices", "step", "token", "message"),
    [
        ({"decoder": "no_attention"}, 0, None, "no attention"),
        ({}, 2, None, "step must be between 0 and 1, got 2"),
        ({}, 0, 99, "99 is no token"),
    ],
)
def test_ascent_refuses_what_cannot_be(translator, choices, step, token, message):
    with pytest.raises(ExperimentError, match=message):
        likeliest_weights(translator(**choices), TEXT, [5, 6], step, token)
