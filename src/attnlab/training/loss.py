"""The loss of a batch, and the negative log-likelihood of its real target tokens."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn.functional import nll_loss

from attnlab.batch import Batch
from attnlab.model.seq2seq import Unrolled
from attnlab.training.output_loss import output_loss


class SummedLoss(NamedTuple):
    """Two sums over real target tokens (`<eos>` included) or sentences, in nats; the same where nothing is smoothed."""

    loss: Tensor  # (), what training lowers
    nll: Tensor  # (), the true negative log-likelihood, what is reported


def summed_loss(output: nn.Linear, unrolled: Unrolled, batch: Batch, label_smoothing: float) -> SummedLoss:
    """The cross-entropy against smoothed labels (Szegedy et al. 2016, section 7), and that against the labels.

    Of a label's probability, the part ε = `label_smoothing` is spread evenly over all V entries of the vocabulary, the
    label itself among them: q'(v) = (1 - ε) δ(v, label) + ε / V. Pads are left out before the output layer, the
    widest of the model, sees them.
    """
    readout, labels = unrolled.readout[batch.target_mask], batch.target_output[batch.target_mask]  # N real tokens
    return SummedLoss(*output_loss(output, readout, labels, label_smoothing))


def summed_nll(output: nn.Linear, unrolled: Unrolled, batch: Batch) -> Tensor:
    """The negative log-likelihood in nats, summed over the real target tokens, `<eos>` included."""
    return summed_loss(output, unrolled, batch, label_smoothing=0.0).loss


def smoothed_nll(log_probabilities: Tensor, labels: Tensor, label_smoothing: float) -> SummedLoss:
    """The sums over N labels: log_probabilities (N, C), labels (N,).

    With two classes, whose probabilities are a sigmoid and its complement, this is the binary cross-entropy.
    """
    nll = nll_loss(log_probabilities, labels, reduction="sum")
    if label_smoothing == 0:
        return SummedLoss(nll, nll)
    uniform = -log_probabilities.mean(dim=-1).sum()  # the cross-entropy against 1 / C
    return SummedLoss((1 - label_smoothing) * nll + label_smoothing * uniform, nll)
