"""The output layer and its loss in one operation, against the plain log-softmax."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnlab.model.fast.output import ROWS, linear_nll
from attnlab.model.outputs.likelihood import smoothed_nll

N, R, V = 2 * ROWS + 3, 5, 11


def inputs(dtype: torch.dtype = torch.float64) -> tuple[nn.Linear, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    readout = torch.randn(N, R, generator=random, dtype=dtype).requires_grad_()
    torch.manual_seed(0)
    return nn.Linear(R, V, dtype=dtype), readout, torch.randint(V, (N,), generator=random)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_linear_nll_has_the_values_and_gradients_of_the_log_softmax(smoothing):
    output, readout, labels = inputs()
    plain = smoothed_nll(output(readout).log_softmax(-1), labels, smoothing)
    loss, nll = linear_nll(output.weight, output.bias, readout, labels, smoothing)
    torch.testing.assert_close(loss, plain.loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(nll, plain.nll, rtol=1e-12, atol=0)
    wanted = [readout, output.weight, output.bias]
    expected = torch.autograd.grad(plain.loss / 7, wanted)
    for mine, theirs in zip(torch.autograd.grad(loss / 7, wanted), expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.processor
def test_linear_nll_under_autocast_gives_gradients_of_the_inputs_types():
    output, readout, labels = inputs(torch.float32)
    wanted = [readout, output.weight, output.bias]
    truth = torch.autograd.grad(
        linear_nll(output.weight, output.bias, readout, labels, 0.0).loss, wanted
    )
    with torch.autocast("cpu", torch.bfloat16):
        half = readout.to(torch.bfloat16).detach().requires_grad_()
        loss, nll = linear_nll(output.weight, output.bias, half, labels, 0.0)
    assert loss.dtype == nll.dtype == torch.float32
    found = torch.autograd.grad(loss, [half, output.weight, output.bias])
    assert [gradient.dtype for gradient in found] == [torch.bfloat16, torch.float32, torch.float32]
    for mine, expected in zip(found, truth, strict=True):
        assert (mine - expected).norm() < 0.02 * expected.norm()


@pytest.mark.processor
def test_linear_nll_under_autocast_rounds_the_logits_only():
    random = torch.Generator().manual_seed(0)
    output, labels = nn.Linear(R, 3000), torch.randint(3000, (N,), generator=random)
    readout = torch.randn(N, R, generator=random).to(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        logits = output(readout)
        loss, nll = linear_nll(output.weight, output.bias, readout, labels, 0.1)
    assert logits.dtype == torch.bfloat16
    exact = smoothed_nll(logits.double().log_softmax(-1), labels, 0.1)
    torch.testing.assert_close(loss.double(), exact.loss, rtol=1e-5, atol=0)
    torch.testing.assert_close(nll.double(), exact.nll, rtol=1e-5, atol=0)


def test_linear_nll_with_tied_embeddings_adds_both_gradients():
    output, _, labels = inputs()
    embedding = nn.Embedding(V, R, dtype=torch.float64)
    embedding.weight = output.weight

    def gradient(loss_of):
        return torch.autograd.grad(loss_of(embedding(labels.roll(1))), [output.weight])[0]

    plain = gradient(lambda x: smoothed_nll(output(x).log_softmax(-1), labels, 0.0).loss)
    ours = gradient(lambda x: linear_nll(output.weight, output.bias, x, labels, 0.0).loss)
    torch.testing.assert_close(ours, plain, rtol=1e-11, atol=1e-12)


def test_linear_nll_without_gradients_builds_no_graph():
    output, readout, labels = inputs()
    with torch.no_grad():
        assert not linear_nll(output.weight, output.bias, readout, labels, 0.0).loss.requires_grad
