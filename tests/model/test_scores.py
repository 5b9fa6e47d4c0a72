"""Each score and the attention against the papers' equations, and their gradients against differences."""

from __future__ import annotations

import numpy as np
import paper_equations as paper
import pytest
import torch

from attnlab.model.attention.attention import Attention
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.dot import DotScore
from attnlab.model.attention.general import GeneralScore

B, T, S, H, D = 2, 3, 5, 4, 6  # all different: a swapped axis shows


def make(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    if name == "dot":
        return DotScore(query_size=D, key_size=D).double()
    if name == "general":
        return GeneralScore(query_size=H, key_size=D).double()
    return BahdanauScore(size=7, query_size=H, key_size=D).double()


def inputs(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    query = torch.randn(B, T, D if name == "dot" else H, generator=random, dtype=torch.float64)
    return query, torch.randn(B, S, D, generator=random, dtype=torch.float64)


MASK = torch.tensor([[True] * 5, [False, False, True, True, True]])


@pytest.mark.parametrize("name", paper.SCORES)
def test_scores(name):
    score, (query, keys) = make(name), inputs(name)
    found = score(query, score.project_keys(keys)).detach().numpy()
    w = paper.weights_of(score)
    expected = [
        [[paper.SCORES[name](w, query[b, t].numpy(), keys[b, s].numpy()) for s in range(S)] for t in range(T)]
        for b in range(B)
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", paper.SCORES)
@pytest.mark.parametrize("masked", [True, False])
def test_attention_over_values_that_are_not_the_keys(name, masked):
    """The context is made of values as they are: neither of keys nor of projected keys."""
    score, (query, keys) = make(name), inputs(name)
    values = torch.randn(B, S, 9, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    mask = MASK if masked else None
    context, weights = Attention(score)(query, score.project_keys(keys), values, mask)
    w = paper.weights_of(score)
    for b in range(B):
        real = MASK[b].numpy() if masked else np.ones(S, bool)
        for t in range(T):
            scores = np.array([paper.SCORES[name](w, query[b, t].numpy(), keys[b, s].numpy()) for s in range(S)])
            expected = np.zeros(S)
            expected[real] = paper.softmax(scores[real])
            np.testing.assert_allclose(weights[b, t].detach().numpy(), expected, rtol=0, atol=1e-10)
            np.testing.assert_allclose(context[b, t].detach().numpy(), expected @ values[b].numpy(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", paper.SCORES)
def test_gradients_of_scores(name):
    score, (query, keys) = make(name), inputs(name)
    leaves = [x.requires_grad_() for x in (query, keys)]
    parameters = dict(score.named_parameters())

    def run(query, keys, *values):
        named = dict(zip(parameters, values, strict=True))

        class Whole(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.score = score

            def forward(self, query, keys):
                return self.score(query, self.score.project_keys(keys))

        changed = {f"score.{key}": value for key, value in named.items()}
        return torch.func.functional_call(Whole(), changed, (query, keys))

    assert torch.autograd.gradcheck(run, (*leaves, *parameters.values()))


@pytest.mark.parametrize("name", paper.SCORES)
@pytest.mark.parametrize("masked", [True, False])
def test_gradients_of_attention(name, masked):
    score, (query, keys) = make(name), inputs(name)
    attention = Attention(score)
    values = torch.randn(B, S, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def run(query, keys, values):
        return attention(query, score.project_keys(keys), values, MASK if masked else None)

    assert torch.autograd.gradcheck(run, tuple(x.requires_grad_() for x in (query, keys, values)))


def test_no_gradient_comes_from_pads():
    score, (query, keys) = make("bahdanau"), inputs("bahdanau")
    keys.requires_grad_()
    values = torch.randn(B, S, 2, dtype=torch.float64, requires_grad=True)
    context, _ = Attention(score)(query, score.project_keys(keys), values, MASK)
    context.square().sum().backward()
    assert (keys.grad[~MASK] == 0).all()
    assert (values.grad[~MASK] == 0).all()
    assert (values.grad[MASK] != 0).all()


def test_the_dot_score_refuses_unequal_widths():
    with pytest.raises(ValueError, match=r"state has 3 and the encoder's output 4; make them equal or choose"):
        DotScore(query_size=3, key_size=4)
