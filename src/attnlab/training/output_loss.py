"""The output layer and its cross-entropy together: the widest tensor of the model is made once, and turned into its own
gradient where it stands."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attnlab.model.fast_linear import product

ROWS = 64  # of the logits, worked on at a time: what is written in between stays small


def output_loss(output: nn.Linear, readout: Tensor, labels: Tensor, label_smoothing: float) -> tuple[Tensor, Tensor]:
    """readout (N, R) and labels (N,) -> the summed loss and the summed negative log-likelihood, both ().

    The same as `smoothed_nll` of the log-softmax of the output layer. Only the loss has a gradient.
    """
    loss, nll = _OutputLoss.apply(readout, output.weight, output.bias, labels, label_smoothing)
    return loss, nll


class _OutputLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, readout: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, label_smoothing: float
    ) -> tuple[Tensor, Tensor]:
        # 1. Under autocast the product is of half precision, and everything behind it of single precision.
        kind = readout.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
        x, cast_weight = readout.to(dtype), weight.to(dtype)
        logits = product(x, cast_weight, bias.to(dtype))  # (N, V)
        # 2. A few rows at a time: their loss, and in the place of each logit z the gradient dL/dz = p - q'.
        nll = logits.new_zeros((), dtype=torch.promote_types(dtype, torch.float32))
        uniform = nll.clone()  # the cross-entropy against 1 / V
        spread = label_smoothing / logits.shape[1]
        for rows, its_labels in zip(logits.split(ROWS), labels.split(ROWS), strict=True):
            log_probs = rows.to(nll.dtype).log_softmax(-1)
            its_labels = its_labels.unsqueeze(1)
            nll -= log_probs.gather(1, its_labels).sum()
            if label_smoothing:
                uniform -= log_probs.mean(-1).sum()
            gradient = log_probs.exp_().sub_(spread)
            rows.copy_(gradient.scatter_add_(1, its_labels, gradient.new_full(its_labels.shape, label_smoothing - 1)))
        ctx.save_for_backward(x, cast_weight, logits)
        ctx.dtypes = readout.dtype, weight.dtype
        ctx.mark_non_differentiable(nll)
        return (1 - label_smoothing) * nll + label_smoothing * uniform, nll

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, into_loss: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        x, weight, gradient = ctx.saved_tensors
        into_readout = product(gradient, weight.t()).to(ctx.dtypes[0])
        into_weight = product(gradient.t(), x.t()).to(ctx.dtypes[1])
        into_bias = gradient.sum(0).to(ctx.dtypes[1])
        return into_readout.mul_(into_loss), into_weight.mul_(into_loss), into_bias.mul_(into_loss), None, None
