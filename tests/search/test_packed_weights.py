"""Weights laid out once: the same products, and nothing of them left behind."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import linear

from attnlab.errors import ExperimentError
from attnlab.model.fast import products
from attnlab.model.fast.packed import PackedWeights, weights_packed_once
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch

packs = pytest.mark.skipif(not products.has_onednn(), reason="torch without oneDNN")


@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 5), (7, 5), (2, 3, 5)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 0.0)])
def test_packed_product_equals_torchs_linear(dtype, tolerance, shape, bias):
    torch.manual_seed(1)
    layer, x = nn.Linear(5, 130, bias=bias).to(dtype), torch.randn(shape, dtype=dtype)
    with PackedWeights():
        found = layer(x)
    torch.testing.assert_close(found, layer(x), rtol=0, atol=tolerance)


@pytest.mark.processor
@torch.no_grad()
def test_packed_product_under_autocast_is_bfloat16():
    torch.manual_seed(1)
    layer, x = nn.Linear(64, 130), torch.randn(7, 64)
    with torch.autocast("cpu", torch.bfloat16):
        expected = layer(x)
        with PackedWeights():
            found = layer(x)
    assert found.dtype is expected.dtype is torch.bfloat16
    torch.testing.assert_close(found.float(), expected.float(), rtol=0.01, atol=0.01)


@torch.no_grad()
def test_packed_product_with_a_slice_of_a_weight_is_torchs_linear():
    layer, x = nn.Linear(6, 3), torch.randn(2, 4)
    with PackedWeights():
        found = linear(x, layer.weight[:, :4])
    assert torch.equal(found, linear(x, layer.weight[:, :4]))


@packs
@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
def test_product_of_integers_is_near_and_no_row_depends_on_another(bias):
    torch.manual_seed(1)
    layer, x = nn.Linear(64, 130, bias=bias), torch.randn(2, 7, 64)
    # A row of zeros, and one that would take all of a common scale
    x[0, 0], x[1, 1] = 0, 1_000 * x[1, 1]
    with PackedWeights(int8=True):
        found, alone = layer(x), layer(x[1:, 3:4])
    expected = layer(x)
    assert ((found - expected).norm(dim=-1) <= 0.02 * expected.norm(dim=-1)).all()
    assert torch.equal(alone, found[1:, 3:4])


@packs
@pytest.mark.parametrize("search", [GreedySearch, BeamSearch])
def test_search_in_integers_scores_nearly_as_the_model_does(search, searchable):
    sizes = {"size": 3, "length_penalty": 1.0} if search is BeamSearch else {}
    model, source, mask = searchable(target_vocabulary_size=700)
    model.float()
    for (exact, *_), (near, *_) in zip(
        search(max_length=8, **sizes)(model, source, mask),
        search(max_length=8, **sizes, int8=True)(model, source, mask),
        strict=True,
    ):
        assert near.score == pytest.approx(exact.score, rel=0.02)
        assert near.score != exact.score


@pytest.mark.processor
def test_search_in_integers_without_onednn_is_refused(searchable, monkeypatch):
    monkeypatch.setattr(products, "has_onednn", lambda *_: False)
    with pytest.raises(ExperimentError, match=r"search\.int8 must be false here"):
        GreedySearch(8, int8=True)(*searchable())


@packs
@torch.no_grad()
def test_packed_weight_is_shared_by_searches_within_the_context():
    layer, x = nn.Linear(5, 3), torch.randn(2, 5)
    with weights_packed_once():
        first, second = PackedWeights(), PackedWeights()
        with first:
            layer(x)
        ((laid_out, _),) = first._packed.values()
        with second:
            layer(x)
        assert [each is laid_out for each, _ in second._packed.values()] == [True]
    assert not PackedWeights()._packed


@pytest.mark.processor
@pytest.mark.parametrize(
    "choices", [{}, {"decoder": "step_then_attend", "input_feeding": "attentional_hidden"}]
)
@pytest.mark.parametrize(
    "search", [GreedySearch(8), BeamSearch(3, 0.6, 8, n_best=3)], ids=["greedy", "beam"]
)
def test_search_with_packed_weights_finds_the_same_hypotheses(
    search, choices, searchable, monkeypatch
):
    model, source, mask = searchable(target_vocabulary_size=700, **choices)
    found = search(model, source, mask)
    monkeypatch.setattr(products, "has_onednn", lambda *_: False)
    for ours, theirs in zip(found, search(model, source, mask), strict=True):
        assert [(h.tokens, h.finished) for h in ours] == [(h.tokens, h.finished) for h in theirs]
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-5)


@pytest.mark.parametrize("search", [GreedySearch(4), BeamSearch(2, 1.0, 4)], ids=["greedy", "beam"])
def test_search_after_a_change_of_weights_uses_the_new_ones(search, searchable):
    model, source, mask = searchable()
    search(model, source, mask)
    with torch.no_grad():
        model.output.weight[4:] = 0
        model.output.weight[5] = model.output.weight[3]
    again = search(model, source, mask)
    other, *_ = searchable()
    other.load_state_dict(model.state_dict())
    assert again == search(other, source, mask)
