"""Linear layers against torch's own: the gradients that a pass collects."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from functools import partial

import pytest
import torch
from torch import nn

from attnlab.model.fast.linear import (
    FastLinear,
    _Collected,
    fast_linear,
    gradients_after_the_pass,
)

STEPS = 5


def loop(layer: nn.Module, x: torch.Tensor, dropped: int | None = None) -> torch.Tensor:
    """A recurrence that leads through the layer at every step.

    The output of step `dropped` leads nowhere.
    """
    total, state = x.new_zeros(()), x
    for t in range(STEPS):
        found = layer(state)
        if t != dropped:
            state = torch.tanh(found)
            total = total + (t + 1) * state.square().sum()
    return total


def gradients(
    run: Callable[[], torch.Tensor], x: torch.Tensor, layer: nn.Module
) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(run(), [x, *layer.parameters()])


def collected(run: Callable[[], torch.Tensor]) -> torch.Tensor:
    with gradients_after_the_pass():
        return run()


def assert_close(
    found: Iterable[torch.Tensor], expected: Iterable[torch.Tensor], tolerance: float = 1e-12
) -> None:
    torch.testing.assert_close(tuple(found), tuple(expected), rtol=tolerance, atol=tolerance)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(
        3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    ).requires_grad_()


@pytest.fixture
def layer() -> FastLinear:
    return FastLinear(4, 4, dtype=torch.float64)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dropped", [None, 2, STEPS - 1])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_collected_gradients_are_those_of_a_plain_loop(bias, dropped, dtype, tolerance, x):
    x = x.detach().to(dtype).requires_grad_()
    layer = FastLinear(4, 4, bias=bias, dtype=dtype)
    run = partial(loop, layer, x, dropped)
    plain = gradients(run, x, layer)
    for _ in range(2):  # a second pass finds nothing of the first
        assert_close(gradients(lambda: collected(run), x, layer), plain, tolerance)


def test_weight_used_in_two_places_collects_both_gradients(layer, x):
    """(B, T, I) too; and one weight with two inputs at each step."""

    def both() -> torch.Tensor:
        wide = torch.stack([x, 2 * x], dim=1)
        return layer(wide).square().sum() + layer(x).pow(3).sum()

    assert_close(gradients(lambda: collected(both), x, layer), gradients(both, x, layer))


def test_gradients_are_added_to_what_is_there(layer, x):
    """Two backward passes of two losses, as with accumulated batches."""
    _, *plain = gradients(partial(loop, layer, x), x, layer)
    for _ in range(2):
        collected(partial(loop, layer, x)).backward()
    assert_close(
        (parameter.grad for parameter in layer.parameters()), (2 * expected for expected in plain)
    )


@pytest.mark.parametrize("first", ["input alone", "everything"])
def test_gradients_of_a_second_backward_pass_are_counted_once(first, layer, x):
    """As a study of gradients does, which asks for the input's alone.

    The weights' gradients are then not computed.
    """
    expected = gradients(partial(loop, layer, x), x, layer)
    total = collected(partial(loop, layer, x))
    wanted = [x, *layer.parameters()]
    asked = wanted[:1] if first == "input alone" else wanted
    assert_close(torch.autograd.grad(total, asked, retain_graph=True), expected[: len(asked)])
    assert_close(torch.autograd.grad(total, wanted), expected)


def test_first_use_without_gradients_leaves_later_gradients_right(layer, x):
    """As where a guess is made of a readout, in the middle of a loop that trains the readout."""

    def guess_first() -> torch.Tensor:
        with torch.no_grad():
            assert not layer(x).requires_grad
        return loop(layer, x)

    expected = gradients(partial(loop, layer, x), x, layer)
    assert_close(gradients(lambda: collected(guess_first), x, layer), expected)


def test_frozen_weights_and_passes_without_gradients_are_plain(layer, x):
    layer.requires_grad_(False)
    with gradients_after_the_pass():
        assert "AddmmBackward" in type(layer(x).grad_fn).__name__
    layer.requires_grad_(True)
    with torch.no_grad(), gradients_after_the_pass():
        torch.testing.assert_close(
            layer(x), nn.functional.linear(x, layer.weight, layer.bias), rtol=0, atol=0
        )


@pytest.mark.processor
def test_half_precision_is_that_of_autocast():
    """The forward values are the same bits; the gradients come nearer to the truth.

    They are summed before they are rounded.
    """
    layer = FastLinear(64, 64)
    start = torch.randn(8, 64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    run = partial(loop, layer, start)
    truth = gradients(run, start, layer)
    with torch.autocast("cpu", torch.bfloat16):
        expected, found = run(), collected(run)
        plain, ours = (
            torch.autograd.grad(total, [start, *layer.parameters()]) for total in (expected, found)
        )
    assert torch.equal(found, expected)
    for mine, theirs, true in zip(ours, plain, truth, strict=True):
        assert mine.dtype == true.dtype
        error, their_error = ((it - true).norm() / true.norm() for it in (mine, theirs))
        assert error < 0.02
        assert error < 1.2 * their_error


def test_outside_of_a_pass_it_is_linear(x):
    weight = torch.randn(2, 4, dtype=torch.float64)
    assert torch.equal(fast_linear(x, weight), nn.functional.linear(x, weight))


def test_layer_with_a_single_input_is_plain_in_a_pass():
    """As coverage's: collected, its gradients would hold every step's keys."""
    with gradients_after_the_pass():
        single, several = (FastLinear(n, 4)(torch.ones(2, 3, n)) for n in (1, 2))
    assert "_Use" not in type(single.grad_fn).__name__
    assert "_Use" in type(several.grad_fn).__name__


def test_fast_linear_after_the_graph_is_deleted_frees_its_collected_tensors(layer, x):
    """At once, and not when Python next looks for circles: a cast weight lies in it."""
    gc.collect()
    gc.disable()
    try:
        collected(partial(loop, layer, x)).backward()
        assert not [each for each in gc.get_objects() if type(each) is _Collected]
    finally:
        gc.enable()
