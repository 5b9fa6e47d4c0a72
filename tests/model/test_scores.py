"""Each score, and the attention made of it, against the papers' equations."""

from __future__ import annotations

from functools import partial

import numpy as np
import paper_equations as paper
import pytest
import torch
from composed_variants import files_of
from legal_choices import EQUAL_WIDTHS
from small_attentions import MASK, PARTS, POSITIONS, B, D, H, S, T, inputs, memory_of

from attnlab.config.part import Part
from attnlab.model.attention.attention import Attention, remember
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.concat import ConcatScore
from attnlab.model.attention.mechanism import Mechanism
from attnlab.model.attention.normed_bahdanau import NormedBahdanauScore
from attnlab.model.attention.score import Score, additive
from attnlab.model.encoders.encoder import Encoded
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.recurrence import RecurrentState
from attnlab.model.scopes import GlobalScope, LocalP

every_score = pytest.mark.parametrize("name", PARTS)


def make(name: str) -> Score:
    torch.manual_seed(0)
    score = PARTS[name](query_size=D if name in EQUAL_WIDTHS else H, key_size=D).double()
    with torch.no_grad():
        for parameter in score.parameters():
            # Learned scales and biases leave their first values
            parameter += 0.1 * torch.randn_like(parameter)
    return score


@pytest.mark.parametrize(
    ("group", "equations"),
    [
        ("attention", {*paper.CONTENT_SCORES, "delta_rule", "location", "none"}),
        ("readout", {*paper.READOUTS}),
        ("bridge", {*paper.BRIDGES}),
        ("normaliser", {*paper.NORMALISERS}),
    ],
)
def test_every_yaml_file_has_an_equation(group, equations):
    missing, left_over = {*files_of(group)} - equations, equations - {*files_of(group)}
    assert not missing, (
        f"write the equation of {missing} in tests/model/paper_equations/ and add it to the table "
        "there"
    )
    assert not left_over, (
        f"tests/model/paper_equations/ has {left_over}, but conf/model/{group}/ has no such file"
    )


@every_score
def test_score_equals_the_equation_of_its_paper(name):
    score, given = make(name), inputs(name)
    projected = score.project_keys(POSITIONS if score.by_position else given.outputs)
    keys = score.finish_keys(projected)
    found = score(given.query, keys)
    assert found.shape == (B, T, S)
    w = paper.weights_of(score)
    for b, t, s in np.ndindex(B, T, S):
        query, key = given.query[b, t].numpy(), given.outputs[b, s].numpy()
        if name == "location":
            expected = paper.location(w, query, int(POSITIONS[b, s]))
        else:
            expected = paper.CONTENT_SCORES[name](w, query, key)
        np.testing.assert_allclose(found[b, t, s].item(), expected, rtol=0, atol=1e-10)


@every_score
@pytest.mark.parametrize("masked", [True, False])
def test_attention_over_values(name, masked):
    """The context is made of the values as they are; all T steps at once.

    Neither of keys nor of projected keys.
    """
    attention, given = Attention(make(name), Softmax(), GlobalScope()), inputs(name)
    context, weights = attention(
        given.query, memory_of(attention, given.outputs, masked), torch.arange(T).expand(B, T)
    )
    w = paper.weights_of(attention)
    for b, t in np.ndindex(B, T):
        # Where pads are weighed they stand behind the last real token.
        seen = MASK[b] if masked else torch.ones(S, dtype=torch.bool)
        order = POSITIONS[b][seen].argsort()
        values = given.outputs[b][seen][order].numpy()
        query = given.query[b, t].numpy()
        expected, (expected_weights,), _ = paper.attend(
            paper.Attention(name), w, query, values, t, [{}]
        )
        np.testing.assert_allclose(context[b, t].detach().numpy(), expected, rtol=0, atol=1e-10)
        ours = weights[b, 0, t].detach()
        np.testing.assert_allclose(ours[seen][order].numpy(), expected_weights, rtol=0, atol=1e-10)
        assert (ours[~seen] == 0).all()


def test_scaled_luong_begins_as_general():
    scaled, general, given = (
        PARTS["scaled_luong"](query_size=H, key_size=D),
        make("general"),
        inputs("general"),
    )
    scaled.W = general.W
    ours, theirs = (
        score(given.query, score.project_keys(given.outputs)) for score in (scaled, general)
    )
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.processor
def test_additive_score_keeps_its_digits_in_half_precision():
    """Whatever the constant that the sigmoid's way leaves.

    v is of one sign, where it is as large as it can be.
    """
    random = torch.Generator().manual_seed(0)
    query, keys = (torch.randn(8, n, 64, generator=random) for n in (1, 6))
    v = torch.rand(64, generator=random)
    truth = torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1)) @ v
    with torch.autocast("cpu", torch.bfloat16):
        found = additive(query, keys, v).float()
    # The softmax knows no constant
    centred = (found - truth) - (found - truth).mean(-1, keepdim=True)
    assert centred.abs().max() < 0.04


@pytest.mark.parametrize(
    "build",
    [
        *(
            partial(score, 400, key_size=2)
            for score in (BahdanauScore, ConcatScore, NormedBahdanauScore)
        ),
        partial(LocalP, 2, False),
    ],
    ids=lambda build: build.func.__name__,
)
def test_v_is_born_between_plus_and_minus_one_over_the_root_of_its_width(build):
    """Scores of a new model then have about one size, however wide it is."""
    torch.manual_seed(0)
    found = build(query_size=400)
    assert found.v.shape == (400,)
    assert -1 / 20 <= found.v.min() < -0.9 / 20
    assert 0.9 / 20 < found.v.max() <= 1 / 20
    if isinstance(found, Score):
        assert found.projected_key_size == 400
    if isinstance(found, NormedBahdanauScore):
        assert found.g.item() == pytest.approx(1 / 20)


@pytest.mark.parametrize(
    ("score", "biased"), [(BahdanauScore, []), (ConcatScore, []), (NormedBahdanauScore, ["U"])]
)
def test_only_the_papers_biases_are_there(score, biased):
    found = score(4, query_size=3, key_size=2)
    assert [name for name, part in found.named_children() if part.bias is not None] == biased


@pytest.mark.parametrize("masked", [True, False])
def test_remember_unmasked_pads_have_positions_after_the_sentence(masked):
    attention = Mechanism(PARTS["location"], Part(Softmax), Part(GlobalScope)).build(H, D)
    encoded = Encoded(inputs("location").outputs, RecurrentState(torch.zeros(1, B, D), None), None)
    memory = remember(encoded, MASK, masked, attention)
    assert (memory.mask is MASK) == masked
    # The second sentence has two pads in front of three tokens.
    assert memory.keys[1].tolist() == ([0, 0, 0, 1, 2] if masked else [3, 4, 0, 1, 2])
    assert memory.positions[1].tolist() == [3, 4, 0, 1, 2]


def test_cosine_of_a_zero_key_is_zero_with_a_finite_gradient():
    score = PARTS["cosine"](query_size=3, key_size=3)
    keys = torch.zeros(1, 2, 3, requires_grad=True)
    query = torch.tensor([[[1.0, 2.0, 2.0]]])
    found = score(query, keys)
    assert torch.equal(found, torch.zeros(1, 1, 2))
    found.sum().backward()
    assert keys.grad.abs().max() < 10
