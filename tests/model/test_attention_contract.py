"""What every choice of an attention's score, projection, normaliser, scope, coverage and heads must keep."""

from __future__ import annotations

import pytest
import torch
from composed_variants import (
    ATTENDING,
    QUERY_SIZE,
    VALUE_SIZE,
    build,
    composed,
    sums_to_one,
)

from attnlab.model.attention.attention import remember
from attnlab.model.attention.memory import Memory
from attnlab.model.encoder import Encoded
from attnlab.model.recurrence import RecurrentState

# The decoder makes no difference to the attention itself.
every_choice = pytest.mark.parametrize("variant", [v for v in ATTENDING if v.decoder == "step_then_attend"], ids=str)

B, T, S = 3, 4, 6
MASK = torch.tensor([[True] * 6, [False] * 2 + [True] * 4, [False] * 5 + [True]])


def drawn(*shape: int, seed: int = 1, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def memory_of(attention, outputs: torch.Tensor, mask: torch.Tensor = MASK, masked: bool = True) -> Memory:
    final = RecurrentState(outputs[:, -1].unsqueeze(0))
    return remember(Encoded(outputs, final, None), mask, masked, attention)


def looks(attention, outputs: torch.Tensor, query: torch.Tensor, mask: torch.Tensor = MASK, masked: bool = True):
    """Context (B, T, D) and weights (B, N, T, S): of all steps at once, or with coverage of one after the other."""
    memory = memory_of(attention, outputs, mask, masked)
    t = torch.arange(query.shape[1]).expand(len(query), -1)
    if attention.coverage is None:
        return attention(query, memory, t)
    coverage = outputs.new_zeros(len(query), attention.heads, outputs.shape[1])
    contexts, all_weights = [], []
    for step in range(query.shape[1]):
        context, weights = attention(query[:, step : step + 1], memory, t[:, step : step + 1], coverage)
        coverage = coverage + weights[:, :, 0]
        contexts.append(context)
        all_weights.append(weights)
    return torch.cat(contexts, dim=1), torch.cat(all_weights, dim=2)


def attention_of(variant, dtype: torch.dtype = torch.float32, **replaced):
    attention = build(variant, dtype=dtype, **replaced).decoder.attention
    assert attention is not None
    return attention


@every_choice
@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("half", [False, True])
def test_weights_sum_to_one_and_are_exactly_zero_at_pads(variant, scale, half):
    """Also where scores are as large as 10^9: the usual score cannot be, so the dot takes its place."""
    large = {} if variant.group == "attention" else {"attention": composed({"attention": "dot"})["attention"]}
    attention = attention_of(variant, **large)
    # The largest keys stand at pads: a finite mask value would leak there.
    outputs = torch.where(MASK.unsqueeze(2), 1.0, 100.0) * drawn(B, S, VALUE_SIZE, seed=2, scale=scale)
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        context, weights = looks(attention, outputs, drawn(B, T, QUERY_SIZE, scale=scale))
    assert weights.shape == (B, attention.heads, T, S)
    assert context.shape == (B, T, VALUE_SIZE)
    assert context.isfinite().all()
    assert weights.dtype == torch.float32
    sums = weights.sum(-1)
    if sums_to_one(variant):
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-6)
    else:
        assert ((sums > 0) & (sums <= 1 + 1e-6)).all()
        assert (sums < 0.99).any()
    assert (weights.masked_select(~MASK[:, None, None]) == 0).all()
    assert (weights >= 0).all()
    assert (weights[2, :, :, 5] == 1).all()  # one real token takes all


@every_choice
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_gradients_are_finite_and_reach_every_parameter(variant, scale, half):
    attention = attention_of(variant)
    query = drawn(B, T, QUERY_SIZE, scale=scale).requires_grad_()
    outputs = drawn(B, S, VALUE_SIZE, seed=2, scale=scale).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        context, weights = looks(attention, outputs, query)
    (
        (context.float() * drawn(*context.shape, seed=3)).sum() + (weights * drawn(*weights.shape, seed=4)).sum()
    ).backward()
    for where, tensor in {**dict(attention.named_parameters()), "query": query, "outputs": outputs}.items():
        assert tensor.grad is not None, where
        assert tensor.grad.isfinite().all(), where
        if scale == 1:  # large scores leave one weight of 1, and nothing to learn
            assert tensor.grad.any(), where
    assert (outputs.grad[~MASK] == 0).all()


@every_choice
@pytest.mark.parametrize(("b", "t", "s"), [(1, 1, 1), (1, 3, 1), (1, 2, 5), (3, 1, 5), (1, 5, 2)])
def test_smallest_and_unequal_sizes(variant, b, t, s):
    attention = attention_of(variant)
    mask = torch.ones(b, s, dtype=torch.bool)
    context, weights = looks(attention, drawn(b, s, VALUE_SIZE, seed=2), drawn(b, t, QUERY_SIZE), mask)
    assert weights.shape == (b, attention.heads, t, s)
    assert context.shape == (b, t, VALUE_SIZE)
    if sums_to_one(variant):
        torch.testing.assert_close(weights.sum(-1), torch.ones(b, attention.heads, t))
