"""Fast linear layers against torch's own: the product, and the gradients that a loop collects."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn
from torch.nn.functional import linear

from attnlab.model import fast_linear as module
from attnlab.model.fast_linear import RepeatedLinear, _Collected, gradients_after_the_loop, product, repeated_linear


@pytest.fixture(params=["as it comes", "without oneDNN"])
def either_way(request, monkeypatch):
    if request.param == "without oneDNN":
        monkeypatch.setattr(module, "has_onednn", lambda: False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_product_of_any_layout_equals_torchs_linear(dtype, turned, bias, rows, either_way):
    """Transposed views too, as the gradients of a linear layer take them."""
    random = torch.Generator().manual_seed(0)

    def matrix(height: int, width: int) -> torch.Tensor:
        if turned:
            return torch.randn(width, height, generator=random).to(dtype).t()
        return torch.randn(height, width, generator=random).to(dtype)

    x, weight = matrix(rows, 33), matrix(21, 33)
    b = torch.randn(21, generator=random).to(dtype) if bias else None
    with torch.no_grad():
        expected = linear(x.double(), weight.double(), None if b is None else b.double())
        found = product(x, weight, b)
    assert found.dtype == dtype
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-13, torch.bfloat16: 0.1}[dtype]
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=tolerance)


def test_product_in_float32_uses_onednn_where_available(monkeypatch):
    if not module.has_onednn():
        pytest.skip("this torch comes without oneDNN")
    monkeypatch.setattr(module, "linear", lambda *_: pytest.fail("MKL was asked"))
    assert product(torch.ones(2, 3), torch.ones(4, 3)).tolist() == [[3.0] * 4] * 2


STEPS = 5


def loop(layer: nn.Module, x: torch.Tensor, dropped: int | None = None) -> torch.Tensor:
    """A recurrence that leads through the layer at every step; the output of step `dropped` leads nowhere."""
    total, state = x.new_zeros(()), x
    for t in range(STEPS):
        found = layer(state)
        if t != dropped:
            state = torch.tanh(found)
            total = total + (t + 1) * state.square().sum()
    return total


def gradients(layer: nn.Module, x: torch.Tensor, collected: bool, **kwargs) -> list[torch.Tensor]:
    wanted = [x, *layer.parameters()]
    if not collected:
        return list(torch.autograd.grad(loop(layer, x, **kwargs), wanted))
    with gradients_after_the_loop():
        total = loop(layer, x, **kwargs)
    return list(torch.autograd.grad(total, wanted))


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dropped", [None, 2, STEPS - 1])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_collected_gradients_are_those_of_a_plain_loop(bias, dropped, dtype, tolerance, x):
    x = x.detach().to(dtype).requires_grad_()
    layer = RepeatedLinear(4, 4, bias=bias, dtype=dtype)
    plain = gradients(layer, x, collected=False, dropped=dropped)
    for _ in range(2):  # a second pass finds nothing of the first
        ours = gradients(layer, x, collected=True, dropped=dropped)
        for mine, expected in zip(ours, plain, strict=True):
            torch.testing.assert_close(mine, expected, rtol=tolerance, atol=tolerance)


def test_weight_used_in_two_places_collects_both_gradients(x):
    """(B, T, I) too; and one weight with two inputs at each step."""
    layer = RepeatedLinear(4, 4, dtype=torch.float64)

    def both() -> torch.Tensor:
        wide = torch.stack([x, 2 * x], dim=1)
        return layer(wide).square().sum() + layer(x).pow(3).sum()

    expected = torch.autograd.grad(both(), [x, *layer.parameters()])
    with gradients_after_the_loop():
        found = both()
    for mine, theirs in zip(torch.autograd.grad(found, [x, *layer.parameters()]), expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)


def test_gradients_are_added_to_what_is_there(x):
    """Two backward passes of two losses, as with accumulated batches."""
    layer = RepeatedLinear(4, 4, dtype=torch.float64)
    plain = gradients(layer, x, collected=False)[1:]
    for _ in range(2):
        with gradients_after_the_loop():
            total = loop(layer, x)
        total.backward()
    for parameter, expected in zip(layer.parameters(), plain, strict=True):
        torch.testing.assert_close(parameter.grad, 2 * expected, rtol=1e-12, atol=1e-12)


def test_gradient_of_the_input_alone_is_right(x):
    """As a study of gradients does: the weights' gradients are then not computed."""
    layer = RepeatedLinear(4, 4, dtype=torch.float64)
    (expected,) = torch.autograd.grad(loop(layer, x), [x])
    with gradients_after_the_loop():
        total = loop(layer, x)
    torch.testing.assert_close(torch.autograd.grad(total, [x])[0], expected, rtol=1e-12, atol=1e-12)


def test_asking_for_the_input_first_does_not_count_the_weights_twice(x):
    layer = RepeatedLinear(4, 4, dtype=torch.float64)
    expected = gradients(layer, x, collected=False)
    with gradients_after_the_loop():
        total = loop(layer, x)
    (first,) = torch.autograd.grad(total, [x], retain_graph=True)
    found = torch.autograd.grad(total, [x, *layer.parameters()])
    for mine, theirs in zip([first, *found], [expected[0], *expected], strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)


def test_frozen_weights_and_passes_without_gradients_are_plain(x):
    layer = RepeatedLinear(4, 4, dtype=torch.float64).requires_grad_(False)
    with gradients_after_the_loop():
        assert "AddmmBackward" in type(layer(x).grad_fn).__name__
    layer.requires_grad_(True)
    with torch.no_grad(), gradients_after_the_loop():
        torch.testing.assert_close(layer(x), nn.functional.linear(x, layer.weight, layer.bias), rtol=0, atol=0)


def test_half_precision_is_that_of_autocast(x):
    """The forward values are the same bits; the gradients come nearer to the truth, for they are summed before they
    are rounded."""
    layer = RepeatedLinear(64, 64)
    start = torch.randn(8, 64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    truth = gradients(layer, start, collected=False)
    with torch.autocast("cpu", torch.bfloat16):
        expected = loop(layer, start)
        plain = torch.autograd.grad(expected, [start, *layer.parameters()])
        with gradients_after_the_loop():
            found = loop(layer, start)
        ours = torch.autograd.grad(found, [start, *layer.parameters()])
    assert torch.equal(found, expected)
    for mine, theirs, true in zip(ours, plain, truth, strict=True):
        assert mine.dtype == true.dtype
        error, their_error = ((it - true).norm() / true.norm() for it in (mine, theirs))
        assert error < 0.02
        assert error < 1.2 * their_error


def test_outside_of_a_loop_it_is_linear(x):
    weight = torch.randn(2, 4, dtype=torch.float64)
    assert torch.equal(repeated_linear(x, weight), nn.functional.linear(x, weight))


def test_first_use_without_gradients_leaves_later_gradients_right(x):
    """As where a guess is made of a readout, in the middle of a loop that trains the readout."""
    layer = RepeatedLinear(4, 4, dtype=torch.float64)
    expected = torch.autograd.grad(loop(layer, x), [x, *layer.parameters()])
    with gradients_after_the_loop():
        with torch.no_grad():
            assert not layer(x).requires_grad
        total = loop(layer, x)
    for mine, plain in zip(torch.autograd.grad(total, [x, *layer.parameters()]), expected, strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-12, atol=1e-12)


def test_repeated_linear_after_the_graph_is_deleted_frees_its_collected_tensors(x):
    """At once, and not when Python next looks for circles: a cast weight lies in it."""
    layer = RepeatedLinear(4, 4, dtype=torch.float64)
    gc.collect()
    gc.disable()
    try:
        with gradients_after_the_loop():
            total = loop(layer, x)
        total.backward()
        del total
        assert not [each for each in gc.get_objects() if type(each) is _Collected]
    finally:
        gc.enable()


def test_second_backward_pass_gives_the_same_gradients(x):
    layer = RepeatedLinear(4, 4, dtype=torch.float64)
    expected = gradients(layer, x, collected=False)
    with gradients_after_the_loop():
        total = loop(layer, x)
    for _ in range(2):
        found = torch.autograd.grad(total, [x, *layer.parameters()], retain_graph=True)
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)
