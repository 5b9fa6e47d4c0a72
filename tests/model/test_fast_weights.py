"""Attention as a memory of fast weights: linear attention.

Axes: B batch, T target, S source, H query, D values, A features.
"""

from __future__ import annotations

import pytest
import torch
from small_attentions import MASK, PARTS, B, D, H, S, T, inputs, memory_of
from torch import Tensor
from torch.nn.functional import elu

from attnlab.model.attention.attention import Attention
from attnlab.model.attention.linear_attention import LinearAttentionScore
from attnlab.model.attention.score import Score
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.scopes import GlobalScope

STEPS = torch.arange(T).expand(B, T)


def built(name: str) -> Score:
    torch.manual_seed(0)
    return PARTS[name](query_size=H, key_size=D).double()


def phi(x: Tensor) -> Tensor:
    return elu(x) + 1


def test_context_of_linear_attention_is_read_from_one_matrix():
    """Katharopoulos et al. 2020, equations 16 to 20: the source is written token by token."""
    score, given = built("linear_attention"), inputs("linear_attention")
    attention = Attention(score, Softmax(), GlobalScope())
    context, _ = attention(given.query, memory_of(attention, given.outputs), STEPS)
    for b in range(B):
        matrix, norm = torch.zeros(7, D).double(), torch.zeros(7).double()
        for h in given.outputs[b][MASK[b]]:
            features = phi(score.U(h))
            matrix = matrix + features.outer(h)
            norm = norm + features
        for t in range(T):
            query = phi(score.W(given.query[b, t]))
            expected = (query @ matrix) / (query @ norm)
            torch.testing.assert_close(context[b, t], expected, rtol=0, atol=1e-10)


def with_identities(size: int) -> LinearAttentionScore:
    """The score of vectors as they are."""
    score = LinearAttentionScore(size, query_size=size, key_size=size)
    with torch.no_grad():
        for layer in (score.W, score.U):
            layer.weight.copy_(torch.eye(size))
    return score


def exact(query: Tensor, keys: Tensor) -> Tensor:
    """log(phi(q) · phi(k)) in float64, by sums of powers that cannot underflow."""
    of_query, of_keys = (
        torch.where(x > 0, x.clamp(min=0).log1p(), x).double() for x in (query, keys)
    )
    return (of_query.unsqueeze(2) + of_keys.unsqueeze(1)).logsumexp(-1)


@pytest.mark.parametrize("middle", [-1000.0, -60.0, 0.0, 60.0, 1e12])
def test_linear_attention_is_exact_for_vectors_of_any_size(middle):
    random = torch.Generator().manual_seed(0)
    query, keys = (middle + 5 * torch.randn(2, n, 6, generator=random) for n in (3, 4))
    query.requires_grad_()
    score = with_identities(6)
    found = score(query, score.project_keys(keys))
    torch.testing.assert_close(found.double(), exact(query, keys), rtol=1e-6, atol=1e-5)

    (gradient,) = torch.autograd.grad(found.sum(), query)
    (expected,) = torch.autograd.grad(exact(query, keys).sum(), query)
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)


def test_linear_attention_of_products_below_any_float_is_finite():
    score = with_identities(2)
    query, keys = torch.tensor([[[0.0, -300.0]]]), torch.tensor([[[-300.0, 0.0], [0.0, 0.0]]])
    found = score(query, keys)[0, 0]
    assert found.isfinite().all()
    assert found.softmax(-1)[0] < 1e-30


@pytest.mark.processor
def test_linear_attention_keeps_its_weights_in_half_precision():
    random = torch.Generator().manual_seed(0)
    query, keys = (2 * torch.randn(4, n, 64, generator=random) for n in (3, 9))
    score = with_identities(64)
    with torch.autocast("cpu", torch.bfloat16):
        found = score(query, score.project_keys(keys))
    assert found.dtype == torch.float32
    wanted = exact(query, keys).softmax(-1)
    assert (found.softmax(-1) - wanted).abs().max() < 0.02 * wanted.max()


def test_gradient_of_linear_attention_at_zero_is_that_of_both_sides():
    """phi is smooth at 0, where the vector of a pad is."""
    score = with_identities(3).double()
    query = torch.randn(1, 1, 3, generator=torch.Generator().manual_seed(0)).double()
    keys = torch.zeros(1, S, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda keys: score(query, keys), [keys])
