"""Each normaliser by itself: against its equation, at its limits, and how it is learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import paper_equations as paper
import pytest
import torch
import yaml
from composed_variants import part_of, usual_first
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

import attnlab
from attnlab.config.binding import bind
from attnlab.errors import ExperimentError
from attnlab.model.normalisers.entmax import Entmax
from attnlab.model.normalisers.hard import Hard
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.normalisers.sparsemax import Sparsemax
from attnlab.model.normalisers.threshold import (
    squares_by_sorting,
    sums_by_sorting,
    threshold_of_squares,
    threshold_of_sums,
)
from attnlab.model.normalisers.top_k import TopK

NAMES = usual_first("normaliser")
FILES = Path(__file__).resolve().parents[2] / "conf/model/normaliser"
# Unequal, as of a trained model: hard choices have no ties.
some_scores = st.lists(st.floats(-20, 20), min_size=1, max_size=8, unique=True).map(
    lambda z: torch.tensor(z, dtype=torch.float64)
)


def made(name: str) -> torch.nn.Module:
    """What it learns has moved away from its first value."""
    normaliser = part_of("normaliser", name)().double().eval()
    with torch.no_grad():
        for parameter in normaliser.parameters():
            parameter += 0.3
    return normaliser


@pytest.mark.parametrize("name", NAMES)
@given(z=some_scores, hidden=st.integers(0, 3))
def test_weights_equal_the_equation_and_hidden_tokens_change_nothing(name, z, hidden):
    normaliser = made(name)
    expected = paper.NORMALISERS[name](z.numpy(), paper.weights_of(normaliser))
    weights = normaliser(torch.cat([z, torch.full((hidden,), -torch.inf, dtype=torch.float64)]))
    np.testing.assert_allclose(weights[: len(z)].detach(), expected, rtol=0, atol=1e-10)
    assert (weights[len(z) :] == 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_what_its_class_says_of_its_rows_is_true(name):
    normaliser = made(name)
    scores = torch.randn(50, 9, generator=torch.Generator().manual_seed(1)).double() * 3
    weights = normaliser(scores)
    assert ((weights.sum(-1) - 1).abs() < 1e-9).all() == normaliser.rows_sum_to_one
    assert (weights == 0).any() == normaliser.is_sparse


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_are_in_float32_where_scores_are_in_half_precision(name, dtype):
    scores = torch.randn(2, 3, 5, dtype=dtype)
    normaliser = part_of("normaliser", name)().eval()
    weights = normaliser(scores)
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights, normaliser(scores.float()))


@given(some_scores)
def test_entmax_is_sparsemax_at_2_and_nears_softmax_at_1(z):
    at_two = Entmax(2.0, learned=False)(z)
    torch.testing.assert_close(at_two, Sparsemax()(z), rtol=0, atol=1e-12)
    near_one = Entmax(1 + 1e-4, learned=False)(z)
    torch.testing.assert_close(near_one, Softmax()(z), rtol=0, atol=1e-2)


@given(some_scores)
def test_entmax_at_one_and_a_half_is_that_of_any_power(z):
    at_three_halves = Entmax(1.5, learned=False)(z)
    of_any_power = Entmax(1.5 + 1e-12, learned=False)(z)
    torch.testing.assert_close(of_any_power, at_three_halves, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("sought", "by_sorting"),
    [(threshold_of_sums, sums_by_sorting), (threshold_of_squares, squares_by_sorting)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [1, 2, 14, 400, 4000])
@pytest.mark.parametrize("kind", ["drawn", "equal", "close", "far", "halves", "hidden"])
def test_newtons_method_and_sorting_find_the_same_threshold(
    sought, by_sorting, dtype, length, kind
):
    places = torch.arange(length)
    drawn = torch.randn(64, length, generator=torch.Generator().manual_seed(5), dtype=dtype)
    scores = {
        "drawn": drawn,
        "equal": torch.zeros_like(drawn),
        "close": 1e-3 * drawn,
        "far": 100 * drawn,
        "halves": torch.zeros_like(drawn) - 2.0**-places,
        "hidden": drawn.masked_fill(places > length // 3, -torch.inf),
    }[kind]
    x = scores - scores.amax(-1, keepdim=True)
    rounding = (8 + length) * torch.finfo(dtype).eps  # of the sums over a sorted row
    torch.testing.assert_close(sought(x), by_sorting(x), rtol=0, atol=rounding)


@pytest.mark.parametrize("name", ["sparsemax", "entmax"])
def test_sparse_weights_of_a_row_do_not_depend_on_the_rows_beside_it(name):
    normaliser = part_of("normaliser", name)()
    scores = torch.randn(500, 14, generator=torch.Generator().manual_seed(6))
    together = normaliser(scores)
    alone = torch.cat([normaliser(row) for row in scores.split(1)])
    assert torch.equal(together, alone)


@pytest.mark.parametrize("name", ["sparsemax", "entmax"])
def test_sparse_weights_can_be_compiled_whole(name):
    normaliser = part_of("normaliser", name)()
    scores = torch.randn(4, 9, generator=torch.Generator().manual_seed(7))
    compiled = torch.compile(normaliser, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(scores), normaliser(scores))


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8, unique=True))
def test_gradients_of_sparse_weights_are_those_of_their_threshold(values):
    """Against differences of the weights, away from scores that gain or lose a weight."""
    z = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    for normaliser in (Sparsemax(), Entmax(1.5, learned=False), Entmax(1.3, learned=False)):
        with torch.no_grad():
            nearly_seen = [normaliser(z + shift * torch.eye(len(z))) > 0 for shift in (-0.01, 0.01)]
            assume(bool((nearly_seen[0] == nearly_seen[1]).all()))
        assert torch.autograd.gradcheck(normaliser, z, atol=1e-4, eps=1e-6)
        assert torch.autograd.gradgradcheck(normaliser, z, atol=1e-3, eps=1e-6)


@pytest.mark.parametrize("alpha", [1.01, 1.2, 1.5, 1.9, 2.0])
@pytest.mark.parametrize("length", [1, 2, 200])
def test_rows_of_entmax_sum_to_one_in_float32(alpha, length):
    scores = 30 * torch.randn(64, length, generator=torch.Generator().manual_seed(2))
    weights = Entmax(alpha, learned=False)(scores)
    torch.testing.assert_close(weights.sum(-1), torch.ones(64))
    assert (weights >= 0).all()
    # Equal scores share the weight.
    equal = Entmax(alpha, learned=False)(torch.zeros(1, length))
    torch.testing.assert_close(equal, torch.full((1, length), 1 / length))


def test_learned_alpha_that_falls_to_softmax_stays_in_reach_of_single_precision():
    """And can rise again: its gradient is that without the limit."""
    entmax = Entmax(1.5, learned=True)
    assert entmax.a is not None
    entmax.a.data.fill_(-17.0)
    scores = torch.tensor([[1.0, 0.5, 0.0, -2.0]])
    weights = entmax(scores)
    (weights @ torch.arange(4.0)).sum().backward()
    assert entmax.alpha.item() == pytest.approx(1.001)
    torch.testing.assert_close(weights, scores.softmax(-1), rtol=0, atol=2e-3)
    assert entmax.a.grad is not None
    assert entmax.a.grad.isfinite()
    assert entmax.a.grad != 0


def test_learned_alpha_starts_where_it_is_told_and_must_be_able_to_move():
    assert Entmax(1.3, learned=True).alpha.item() == pytest.approx(1.3)
    with pytest.raises(ValueError, match="alpha must start below 2 where it is learned"):
        Entmax(2.0, learned=True)


@pytest.mark.parametrize("scale", [1, 30])
def test_entmax_has_digits_enough_in_float32_at_its_least_alpha(scale):
    scores = scale * torch.randn(64, 20, generator=torch.Generator().manual_seed(3))
    least = Entmax(1.001, learned=False)
    torch.testing.assert_close(least(scores), least(scores.double()).float(), rtol=0, atol=2e-5)
    # Why it is the least one.
    nearer = Entmax(1 + 1e-7, learned=False)
    assert (nearer(scores) - nearer(scores.double())).abs().max() > 1e-2


@pytest.mark.parametrize("alpha", [1.0, 1.0005, 2.5])
def test_alpha_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        attnlab.Attention("dot", query_size=4, normaliser="entmax", alpha=alpha, learned=False)


def test_equal_scores_at_the_edge_of_top_k_are_kept_together():
    weights = TopK(2)(torch.tensor([1.0, 3.0, 1.0, 0.0]))
    assert (weights > 0).tolist() == [True, True, True, False]


def test_top_k_of_one_token_is_refused_as_its_weight_never_changes():
    with pytest.raises(
        ValueError, match=r"k must be at least 2, got 1: .*; choose model/normaliser=hard"
    ):
        TopK(1)


@pytest.mark.parametrize("temperature", [1e-40, 1e-5, 1e4])
@pytest.mark.parametrize(
    ("name", "setting"), [("hard", "temperature"), ("learned_temperature", "initial")]
)
def test_temperature_that_leaves_no_gradient_is_refused(name, setting, temperature):
    node = yaml.safe_load((FILES / f"{name}.yaml").read_text("utf-8")) | {setting: temperature}
    words = f"model.normaliser.{setting} must be a number between 0.001 and 1000, got {temperature}"
    with pytest.raises(ExperimentError, match=words):
        bind(node, Normaliser, "model.normaliser")


def gradient(normaliser: torch.nn.Module, scores: Tensor, direction: Tensor) -> Tensor:
    leaf = scores.clone().requires_grad_()
    (normaliser(leaf) * direction).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


def test_hard_weights_are_learned_by_the_gradient_of_a_softmax():
    scores, direction = torch.randn(3, 4, 6).double(), torch.randn(3, 4, 6).double()
    hard = Hard(temperature=2.0, noise=False)
    expected = gradient(Softmax(), scores / 2.0, direction) / 2.0
    torch.testing.assert_close(gradient(hard, scores, direction), expected)
    hidden = scores.clone()
    hidden[..., 0] = -torch.inf
    assert (gradient(hard, hidden, direction)[..., 0] == 0).all()


def test_gumbel_draws_with_the_probabilities_of_the_softmax_and_only_in_training():
    scores = torch.tensor([0.0, 1.0, 2.0, -torch.inf])
    gumbel = Hard(temperature=1.0, noise=True).train()
    torch.manual_seed(3)
    draws = 20_000
    shares = gumbel(scores.expand(draws, 4)).mean(0)
    # Four standard errors of a share.
    torch.testing.assert_close(shares, scores.softmax(-1), rtol=0, atol=4 * 0.5 / draws**0.5)
    assert shares[3] == 0
    assert gumbel.eval()(scores).tolist() == [0, 0, 1, 0]
