"""The output layer and its loss in one place against the plain log-softmax."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnlab.training.loss import smoothed_nll
from attnlab.training.output_loss import ROWS, output_loss

N, R, V = 2 * ROWS + 3, 5, 11


def inputs(dtype: torch.dtype = torch.float64) -> tuple[nn.Linear, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    readout = torch.randn(N, R, generator=random, dtype=dtype).requires_grad_()
    torch.manual_seed(0)
    return nn.Linear(R, V, dtype=dtype), readout, torch.randint(V, (N,), generator=random)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_values_and_gradients_are_those_of_the_log_softmax(smoothing):
    output, readout, labels = inputs()
    plain = smoothed_nll(output(readout).log_softmax(-1), labels, smoothing)
    loss, nll = output_loss(output, readout, labels, smoothing)
    torch.testing.assert_close(loss, plain.loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(nll, plain.nll, rtol=1e-12, atol=0)
    wanted = [readout, output.weight, output.bias]
    expected = torch.autograd.grad(plain.loss / 7, wanted)
    for mine, theirs in zip(torch.autograd.grad(loss / 7, wanted), expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-12)


def test_single_precision_is_near_to_double():
    output, readout, labels = inputs()
    truth = torch.autograd.grad(output_loss(output, readout, labels, 0.1)[0], [readout, output.weight, output.bias])
    output, readout, labels = output.float(), readout.detach().float().requires_grad_(), labels
    found = torch.autograd.grad(output_loss(output, readout, labels, 0.1)[0], [readout, output.weight, output.bias])
    for mine, expected in zip(found, truth, strict=True):
        torch.testing.assert_close(mine.double(), expected, rtol=1e-5, atol=1e-5)


def test_under_autocast_weights_and_readout_keep_their_kinds_of_gradients():
    output, readout, labels = inputs(torch.float32)
    wanted = [readout, output.weight, output.bias]
    truth = torch.autograd.grad(output_loss(output, readout, labels, 0.0)[0], wanted)
    with torch.autocast("cpu", torch.bfloat16):
        half = readout.to(torch.bfloat16).detach().requires_grad_()
        loss, nll = output_loss(output, half, labels, 0.0)
    assert loss.dtype == nll.dtype == torch.float32
    found = torch.autograd.grad(loss, [half, output.weight, output.bias])
    assert [gradient.dtype for gradient in found] == [torch.bfloat16, torch.float32, torch.float32]
    for mine, expected in zip(found, truth, strict=True):
        assert (mine - expected).norm() < 0.02 * expected.norm()


def test_under_autocast_the_loss_of_the_rounded_logits_is_exact():
    """The logits are of half precision; what is made of them must not be rounded once more."""
    random = torch.Generator().manual_seed(0)
    output, labels = nn.Linear(R, 3000), torch.randint(3000, (N,), generator=random)
    readout = torch.randn(N, R, generator=random).to(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        logits = output(readout)
        loss, nll = output_loss(output, readout, labels, 0.1)
    assert logits.dtype == torch.bfloat16
    exact = smoothed_nll(logits.double().log_softmax(-1), labels, 0.1)
    torch.testing.assert_close(loss.double(), exact.loss, rtol=1e-5, atol=0)
    torch.testing.assert_close(nll.double(), exact.nll, rtol=1e-5, atol=0)


def test_a_tied_embedding_gets_both_of_its_gradients():
    output, _, labels = inputs()
    embedding = nn.Embedding(V, R, dtype=torch.float64)
    embedding.weight = output.weight

    def total(loss_of):
        return loss_of(embedding(labels.roll(1)))

    (plain,) = torch.autograd.grad(
        total(lambda x: smoothed_nll(output(x).log_softmax(-1), labels, 0.0).loss), [output.weight]
    )
    (ours,) = torch.autograd.grad(total(lambda x: output_loss(output, x, labels, 0.0)[0]), [output.weight])
    torch.testing.assert_close(ours, plain, rtol=1e-11, atol=1e-12)


def test_without_gradients_nothing_is_kept():
    output, readout, labels = inputs()
    with torch.no_grad():
        loss, _ = output_loss(output, readout, labels, 0.0)
    assert not loss.requires_grad
