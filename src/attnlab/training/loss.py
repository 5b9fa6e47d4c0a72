"""The loss of a batch, and the negative log-likelihood of its real target tokens or labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from attnlab.batch import Batch
from attnlab.model.fast.products import product
from attnlab.model.seq2seq import Unrolled

ROWS = 64  # of the logits, processed at a time, so that intermediate results stay small


class SummedLoss(NamedTuple):
    """Two sums over real target tokens (`<eos>` included) or sentences, in nats.

    They are equal without label smoothing.
    """

    loss: Tensor  # (), what training lowers
    nll: Tensor  # (), the true negative log-likelihood, what is reported


def summed_loss(
    output: nn.Linear, unrolled: Unrolled, batch: Batch, label_smoothing: float
) -> SummedLoss:
    """The cross-entropy against smoothed labels, and the cross-entropy against the labels.

    Label smoothing is that of Szegedy et al. 2016, section 7. Of a label's probability, the part
    ε = `label_smoothing` is spread evenly over all V entries of the vocabulary, the label itself
    included: q'(v) = (1 - ε) δ(v, label) + ε / V. Pads are removed before the output layer, the
    widest of the model.
    """
    readout = unrolled.readout[batch.target_mask]  # (N, R) of the real tokens
    labels = batch.target_output[batch.target_mask]  # (N,)
    return output_loss(output, readout, labels, label_smoothing)


def summed_nll(output: nn.Linear, unrolled: Unrolled, batch: Batch) -> Tensor:
    """The negative log-likelihood in nats, summed over the real target tokens, `<eos>` included."""
    return summed_loss(output, unrolled, batch, label_smoothing=0.0).loss


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


def output_loss(
    output: nn.Linear, readout: Tensor, labels: Tensor, label_smoothing: float
) -> SummedLoss:
    """The output layer and its loss in one operation: readout (N, R), labels (N,).

    Only the loss has a gradient. The result is that of `smoothed_nll` of the log-softmax of the
    output layer, but the logits, the largest tensor of the model, are stored once and overwritten
    by their own gradient.
    """
    loss, nll = _OutputLoss.apply(readout, output.weight, output.bias, labels, label_smoothing)
    return SummedLoss(loss, nll)


class _OutputLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        readout: Tensor,
        weight: Tensor,
        bias: Tensor,
        labels: Tensor,
        label_smoothing: float,
    ) -> tuple[Tensor, Tensor]:
        # 1. Under autocast the product is in half precision, and all after it in single precision.
        kind = readout.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
        x = readout.to(dtype)
        cast_weight = weight.to(dtype)
        logits = product(x, cast_weight, bias.to(dtype))  # (N, V)

        # 2. A few rows at a time: add their loss, and replace each logit z by its gradient,
        # dL/dz = p - q'.
        nll = logits.new_zeros((), dtype=torch.promote_types(dtype, torch.float32))
        uniform = nll.clone()  # the cross-entropy against 1 / V
        spread = label_smoothing / logits.shape[1]
        for rows, its_labels in zip(logits.split(ROWS), labels.split(ROWS), strict=True):
            z = rows.to(nll.dtype)
            its_labels = its_labels.unsqueeze(1)
            probabilities = z.softmax(-1)

            # log sum_v exp(z_v) without taking the exponentials again: the likeliest entry has
            # p = exp(z - log sum).
            log_sum = z.amax(-1, keepdim=True) - probabilities.amax(-1, keepdim=True).log()
            nll += (log_sum - z.gather(1, its_labels)).sum()
            if label_smoothing:
                uniform += (log_sum - z.mean(-1, keepdim=True)).sum()

            # q' is ε / V everywhere, and 1 - ε more at the label.
            gradient = probabilities.sub_(spread)
            at_label = gradient.new_full(its_labels.shape, label_smoothing - 1)
            rows.copy_(gradient.scatter_add_(1, its_labels, at_label))

        ctx.save_for_backward(x, cast_weight, logits)
        ctx.readout_dtype = readout.dtype
        ctx.weight_dtype = weight.dtype
        ctx.mark_non_differentiable(nll)
        return (1 - label_smoothing) * nll + label_smoothing * uniform, nll

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, into_loss: Tensor, _: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, None, None]:
        x, weight, gradient = ctx.saved_tensors  # gradient: of the loss by the logits
        into_readout = product(gradient, weight.t()).to(ctx.readout_dtype)
        into_weight = product(gradient.t(), x.t()).to(ctx.weight_dtype)
        into_bias = gradient.sum(0).to(ctx.weight_dtype)
        for each in (into_readout, into_weight, into_bias):
            each.mul_(into_loss)
        return into_readout, into_weight, into_bias, None, None
