"""The loss against Szegedy et al.'s formula in numpy.

The output layer's loss is compared with the plain log-softmax.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.model.seq2seq import Unrolled
from attnlab.training.loss import ROWS, output_loss, smoothed_nll, summed_loss, summed_nll

N, R, V = 2 * ROWS + 3, 5, 11


class SameLogits(nn.Linear):
    """An output layer that returns its input."""

    def __init__(self) -> None:
        super().__init__(V, V)
        with torch.no_grad():
            self.weight.copy_(torch.eye(V))
            self.bias.zero_()


@pytest.fixture(params=["pre", "post"])
def batch(request, pairs):
    return make_batch(*pairs(), Padding(decoder=request.param))


def expected(logits: torch.Tensor, batch, smoothing: float) -> tuple[float, np.ndarray]:
    """The loss, and its gradient p - q' with respect to the real tokens' logits, in float64."""
    z = logits.detach().double().numpy()[batch.target_mask.numpy()]  # (N, V)
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    one_hot = np.eye(V)[batch.target_output[batch.target_mask].numpy()]
    q = (1 - smoothing) * one_hot + smoothing * np.full_like(p, 1 / V)
    return float(-(q * np.log(p)).sum()), p - q


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 0.99])
def test_summed_loss_equals_the_cross_entropy_against_smoothed_labels(smoothing, batch, pairs):
    torch.manual_seed(0)
    logits = 3 * torch.randn(*batch.target_output.shape, V)
    logits[~batch.target_mask] = torch.nan  # the values at pads must not matter
    logits.requires_grad_()
    loss, nll = summed_loss(SameLogits(), Unrolled(logits, None), batch, smoothing)
    value, gradient = expected(logits, batch, smoothing)
    assert loss.item() == pytest.approx(value, rel=1e-5)
    assert nll.item() == pytest.approx(expected(logits, batch, 0.0)[0], rel=1e-5)
    assert summed_nll(SameLogits(), Unrolled(logits, None), batch).item() == nll.item()
    loss.backward()
    np.testing.assert_allclose(logits.grad[batch.target_mask].numpy(), gradient, atol=1e-6)
    assert not logits.grad[~batch.target_mask].any()
    assert batch.num_target_tokens == sum(len(target) + 1 for target in pairs()[1])


def test_smoothed_nll_of_two_classes_equals_binary_cross_entropy():
    logits = torch.randn(9, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    labels = torch.tensor([0, 1, 1, 0, 1, 0, 0, 0, 1])
    expected = nn.functional.binary_cross_entropy_with_logits(
        logits[:, 0], labels.double(), reduction="sum"
    )
    both = torch.cat([nn.functional.logsigmoid(-logits), nn.functional.logsigmoid(logits)], dim=1)
    loss = smoothed_nll(both, labels, 0.0)
    torch.testing.assert_close(loss.loss, expected)
    assert loss.nll is loss.loss


def inputs(dtype: torch.dtype = torch.float64) -> tuple[nn.Linear, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    readout = torch.randn(N, R, generator=random, dtype=dtype).requires_grad_()
    torch.manual_seed(0)
    return nn.Linear(R, V, dtype=dtype), readout, torch.randint(V, (N,), generator=random)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_output_loss_has_the_values_and_gradients_of_the_log_softmax(smoothing):
    output, readout, labels = inputs()
    plain = smoothed_nll(output(readout).log_softmax(-1), labels, smoothing)
    loss, nll = output_loss(output, readout, labels, smoothing)
    torch.testing.assert_close(loss, plain.loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(nll, plain.nll, rtol=1e-12, atol=0)
    wanted = [readout, output.weight, output.bias]
    expected = torch.autograd.grad(plain.loss / 7, wanted)
    for mine, theirs in zip(torch.autograd.grad(loss / 7, wanted), expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.processor
def test_output_loss_under_autocast_gives_gradients_of_the_inputs_types():
    output, readout, labels = inputs(torch.float32)
    wanted = [readout, output.weight, output.bias]
    truth = torch.autograd.grad(output_loss(output, readout, labels, 0.0).loss, wanted)
    with torch.autocast("cpu", torch.bfloat16):
        half = readout.to(torch.bfloat16).detach().requires_grad_()
        loss, nll = output_loss(output, half, labels, 0.0)
    assert loss.dtype == nll.dtype == torch.float32
    found = torch.autograd.grad(loss, [half, output.weight, output.bias])
    assert [gradient.dtype for gradient in found] == [torch.bfloat16, torch.float32, torch.float32]
    for mine, expected in zip(found, truth, strict=True):
        assert (mine - expected).norm() < 0.02 * expected.norm()


@pytest.mark.processor
def test_output_loss_under_autocast_rounds_the_logits_only():
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


def test_output_loss_with_tied_embeddings_adds_both_gradients():
    output, _, labels = inputs()
    embedding = nn.Embedding(V, R, dtype=torch.float64)
    embedding.weight = output.weight

    def gradient(loss_of):
        return torch.autograd.grad(loss_of(embedding(labels.roll(1))), [output.weight])[0]

    plain = gradient(lambda x: smoothed_nll(output(x).log_softmax(-1), labels, 0.0).loss)
    ours = gradient(lambda x: output_loss(output, x, labels, 0.0).loss)
    torch.testing.assert_close(ours, plain, rtol=1e-11, atol=1e-12)


def test_output_loss_without_gradients_builds_no_graph():
    output, readout, labels = inputs()
    with torch.no_grad():
        assert not output_loss(output, readout, labels, 0.0).loss.requires_grad
