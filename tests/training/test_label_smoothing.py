"""The smoothed loss against Szegedy et al.'s formula, and that only the loss is smoothed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.model.seq2seq import Unrolled
from attnlab.training.loss import summed_loss, summed_nll

V = 9


class SameLogits(torch.nn.Linear):
    """An output layer that hands the readout on."""

    def __init__(self) -> None:
        super().__init__(V, V)
        with torch.no_grad():
            self.weight.copy_(torch.eye(V))
            self.bias.zero_()


@pytest.fixture(params=["pre", "post"])
def batch(request, pairs):
    return make_batch(*pairs(), Padding(decoder=request.param))


@pytest.fixture
def logits(batch) -> torch.Tensor:
    """(B, T, V), nonsense at pads."""
    torch.manual_seed(0)
    logits = 3 * torch.randn(*batch.target_output.shape, V)
    logits[~batch.target_mask] = torch.nan
    return logits.requires_grad_()


def unrolled(readout: torch.Tensor) -> Unrolled:
    return Unrolled(readout, None)


def expected(logits: torch.Tensor, batch, smoothing: float) -> tuple[float, np.ndarray]:
    """The loss, and its gradient p - q' with respect to the real tokens' logits, in float64."""
    z = logits.detach().double().numpy()[batch.target_mask.numpy()]  # (N, V)
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    one_hot = np.eye(V)[batch.target_output[batch.target_mask].numpy()]
    q = (1 - smoothing) * one_hot + smoothing * np.full_like(p, 1 / V)
    return float(-(q * np.log(p)).sum()), p - q


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 0.99])
def test_the_loss_is_the_cross_entropy_against_smoothed_labels(smoothing, batch, logits):
    loss, nll = summed_loss(SameLogits(), unrolled(logits), batch, smoothing)
    value, gradient = expected(logits, batch, smoothing)
    assert loss.item() == pytest.approx(value, rel=1e-5)
    assert nll.item() == pytest.approx(expected(logits, batch, 0.0)[0], rel=1e-5)
    loss.backward()
    np.testing.assert_allclose(logits.grad[batch.target_mask].numpy(), gradient, atol=1e-6)
    assert not logits.grad[~batch.target_mask].any()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_torch_smooths_in_the_same_way(smoothing, batch, logits):
    chosen, labels = logits[batch.target_mask], batch.target_output[batch.target_mask]
    theirs = cross_entropy(chosen, labels, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(summed_loss(SameLogits(), unrolled(logits), batch, smoothing).loss, theirs)


def test_nothing_smoothed_is_the_plain_loss(batch, logits):
    loss, nll = summed_loss(SameLogits(), unrolled(logits), batch, 0.0)
    plain = cross_entropy(logits[batch.target_mask], batch.target_output[batch.target_mask], reduction="sum")
    assert loss.item() == nll.item() == summed_nll(SameLogits(), unrolled(logits), batch).item()
    assert loss.item() == pytest.approx(plain.item(), rel=1e-6)
    smoothed = summed_loss(SameLogits(), unrolled(logits), batch, 0.1)
    assert smoothed.nll.item() == nll.item() != smoothed.loss.item()


def test_it_rewards_the_smoothed_labels_themselves(batch):
    """The loss is lowest where the model gives the label 1 - ε + ε/V, and not where it gives it all."""
    sure = 40.0 * torch.eye(V)[batch.target_output]
    smoothing = 0.1
    q = (1 - smoothing) * torch.eye(V)[batch.target_output] + smoothing / V
    losses = [summed_loss(SameLogits(), unrolled(logits), batch, smoothing).loss.item() for logits in (sure, q.log())]
    entropy = -(q[0, 0] * q[0, 0].log()).sum().item() * batch.num_target_tokens
    assert losses[1] == pytest.approx(entropy, rel=1e-5)
    assert losses[0] > losses[1]
