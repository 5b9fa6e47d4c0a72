"""The loss against Szegedy et al.'s formula in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.model.fast import speed_up
from attnlab.model.outputs.likelihood import smoothed_nll
from attnlab.model.outputs.linear import LinearOutput
from attnlab.model.outputs.output import Reading
from attnlab.model.unrolled import Unrolled
from attnlab.training.loss import summed_loss, summed_nll

V = 11


def same_logits(is_fast: bool) -> LinearOutput:
    """An output that returns its input."""
    output = LinearOutput(readout_size=V, target_vocabulary_size=V)
    with torch.no_grad():
        output.weight.copy_(torch.eye(V))
        output.bias.zero_()
    return speed_up(output) if is_fast else output


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


@pytest.mark.parametrize("is_fast", [False, True], ids=["plain", "fast"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 0.99])
def test_summed_loss_equals_the_cross_entropy_against_smoothed_labels(
    smoothing, is_fast, batch, pairs
):
    torch.manual_seed(0)
    logits = 3 * torch.randn(*batch.target_output.shape, V)
    logits[~batch.target_mask] = torch.nan  # the values at pads must not matter
    logits.requires_grad_()
    output = same_logits(is_fast)
    unrolled = Unrolled(Reading(logits), None)
    loss, nll = summed_loss(output, unrolled, batch, smoothing)
    value, gradient = expected(logits, batch, smoothing)
    assert loss.item() == pytest.approx(value, rel=1e-5)
    assert nll.item() == pytest.approx(expected(logits, batch, 0.0)[0], rel=1e-5)
    assert summed_nll(output, unrolled, batch).item() == nll.item()
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
