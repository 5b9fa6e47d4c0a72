"""Negative log-likelihood of tokens or labels, with and without smoothing."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from attnlab.errors import ExperimentError


class SummedLoss(NamedTuple):
    """Two sums over real target tokens (`<eos>` included) or sentences, in nats.

    They are equal without label smoothing.
    """

    loss: Tensor  # (), what training lowers
    nll: Tensor  # (), the true negative log-likelihood, what is reported


def at_least_single(x: Tensor) -> Tensor:
    """x in single precision at least, in which sums of many small probabilities stay exact."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class EachLoss(NamedTuple):
    """The summands of a `SummedLoss`, one for each of N tokens or sentences."""

    loss: Tensor  # (N,)
    nll: Tensor  # (N,)

    def summed(self) -> SummedLoss:
        """Their sums."""
        return SummedLoss(self.loss.sum(), self.nll.sum())


def each_smoothed_nll(
    log_probabilities: Tensor, labels: Tensor, label_smoothing: float
) -> EachLoss:
    """The summands of `smoothed_nll`: log_probabilities (N, C), labels (N,)."""
    nll = nll_loss(log_probabilities, labels, reduction="none")
    if label_smoothing == 0:
        return EachLoss(nll, nll)
    uniform = -log_probabilities.mean(dim=-1)
    return EachLoss((1 - label_smoothing) * nll + label_smoothing * uniform, nll)


def smoothed_nll(log_probabilities: Tensor, labels: Tensor, label_smoothing: float) -> SummedLoss:
    """The sums over N labels: log_probabilities (N, C), labels (N,).

    With two classes, whose probabilities are a sigmoid and its complement, this is the binary
    cross-entropy.
    """
    nll = nll_loss(log_probabilities, labels, reduction="sum")
    if label_smoothing == 0:
        return SummedLoss(nll, nll)
    uniform = -log_probabilities.mean(dim=-1).sum()  # the cross-entropy against 1 / C
    return SummedLoss((1 - label_smoothing) * nll + label_smoothing * uniform, nll)


def positive_shares(weights: Tensor) -> Tensor:
    """Weights (..., S) that an intervention set, divided by their sum.

    Raises ExperimentError where all are 0.
    """
    total = weights.sum(-1, keepdim=True)
    if not (total > 0).all():
        raise ExperimentError(
            "intervene leaves all attention weights of a step at 0, but model/output sums over the "
            "source tokens that they choose from; hide fewer tokens, or give a weight above 0"
        )
    return weights / total
