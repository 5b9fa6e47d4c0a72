"""The plain output with its layer by `fast_linear`, and with its loss in one operation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attnlab.model.fast.linear import fast_linear
from attnlab.model.fast.products import product
from attnlab.model.outputs.likelihood import SummedLoss
from attnlab.model.outputs.linear import LinearOutput
from attnlab.model.outputs.output import Reading

# Rows of the logits that are processed at a time. On a CPU intermediate results stay in its cache.
# On a GPU, where each operation is a launch, they only need to fit into memory.
ROWS = 64
ROWS_ON_GPU = 8192


class FastLinearOutput(LinearOutput):
    """Stores the logits of a batch, the largest tensor of the model, only once."""

    def forward(self, reading: Reading) -> Tensor:  # type: ignore[override]
        return fast_linear(reading.readout, self.weight, self.bias)

    def summed_loss(self, reading: Reading, labels: Tensor, label_smoothing: float) -> SummedLoss:
        return linear_nll(self.weight, self.bias, reading.readout, labels, label_smoothing)


def linear_nll(
    weight: Tensor, bias: Tensor, readout: Tensor, labels: Tensor, label_smoothing: float
) -> SummedLoss:
    """A linear layer over the vocabulary and its loss in one operation.

    weight (V, R), bias (V,), readout (N, R), labels (N,).

    Only the loss has a gradient. The result is that of `smoothed_nll` of the log-softmax of the
    layer, but the logits, the largest tensor of the model, are stored once and overwritten
    by their own gradient.
    """
    loss, nll = _LinearNll.apply(readout, weight, bias, labels, label_smoothing)
    return SummedLoss(loss, nll)


class _LinearNll(torch.autograd.Function):
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
        size = ROWS if logits.is_cpu else ROWS_ON_GPU
        for rows, its_labels in zip(logits.split(size), labels.split(size), strict=True):
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
