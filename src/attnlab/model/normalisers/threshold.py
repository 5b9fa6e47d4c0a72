"""The threshold of sparse weights: tau with sum_i [x_i - tau]_+^power = 1.

Newton's method finds it for every power. For the powers 1 (sparsemax) and 2 (1.5-entmax) sorting
finds it too, in a fixed number of operations: on a GPU, which would have to wait for the processor
after each of Newton's steps, and in a compiled or exported model, which cannot go by what a step
finds. On a processor sorting long rows takes several times as long.

x is (..., S), its greatest number 0; tau is (..., 1).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_MOST_STEPS = 50  # of Newton's method; ten are the rule

Sums = Callable[[Tensor], tuple[Tensor, Tensor]]
"""What is left above tau, (..., S) -> the sum of its powers, and how steeply that falls in tau.

It may overwrite what it is given.
"""


def threshold_of_sums(x: Tensor) -> Tensor:
    """tau for the power 1 (Martins and Astudillo 2016)."""
    if _takes_fixed_operations(x):
        return sums_by_sorting(x)

    def sums(left: Tensor) -> tuple[Tensor, Tensor]:
        sum_of_left = left.sum(-1, keepdim=True)
        return sum_of_left, left.sign_().sum(-1, keepdim=True)

    return by_newton(x, sums)


def threshold_of_squares(x: Tensor) -> Tensor:
    """tau for the power 2 (Peters et al. 2019)."""
    if _takes_fixed_operations(x):
        return squares_by_sorting(x)

    def sums(left: Tensor) -> tuple[Tensor, Tensor]:
        sum_of_left = left.sum(-1, keepdim=True)
        return left.square_().sum(-1, keepdim=True), sum_of_left.mul_(2)

    return by_newton(x, sums)


def _takes_fixed_operations(x: Tensor) -> bool:
    return x.device.type != "cpu" or torch.compiler.is_compiling()


def threshold_of_powers(x: Tensor, power: Tensor) -> Tensor:
    """tau for a power () of at least 1."""

    def sums(left: Tensor) -> tuple[Tensor, Tensor]:
        seen = left > 0
        one_power_less = torch.where(seen, left, 1) ** (power - 1) * seen
        of_powers = (one_power_less * left).sum(-1, keepdim=True)
        return of_powers, power * one_power_less.sum(-1, keepdim=True)

    return by_newton(x, sums)


def by_newton(x: Tensor, sums: Sums) -> Tensor:
    """tau from below; the sum falls in tau, and ever less steeply, so that no step goes too far."""
    tau = torch.full_like(x[..., :1], -1)
    nearest = torch.finfo(x.dtype).eps
    for _ in range(_MOST_STEPS):
        left = (x - tau).clamp_(min=0)
        total, steepness = sums(left)
        step = (total - 1).div_(steepness)
        # A row that has arrived stays, so that its weights do not depend on the rows beside it.
        goes_on = step > nearest
        tau += step.mul_(goes_on)
        # A CUDA graph cannot go by what it finds.
        is_captured = x.is_cuda and torch.cuda.is_current_stream_capturing()
        if not is_captured and not goes_on.any():
            break
    return tau


def sums_by_sorting(x: Tensor) -> Tensor:
    """tau for the power 1 (Martins and Astudillo 2016, algorithm 1)."""
    # 1. The support is the longest run of sorted scores with 1 + k x_(k) > sum_{j<=k} x_(j).
    ordered = x.sort(-1, descending=True).values
    sums = ordered.cumsum(-1)
    k = torch.arange(1, x.shape[-1] + 1, device=x.device)
    size = (1 + k * ordered > sums).sum(-1, keepdim=True)
    # 2. tau makes the weights of the support sum to 1.
    return (sums.gather(-1, size - 1) - 1) / size


def squares_by_sorting(x: Tensor) -> Tensor:
    """tau for the power 2 (Peters et al. 2019, algorithm 2)."""
    # No weight is left below -1; the mean of what is seen must stay finite.
    ordered = x.clamp(min=-1).sort(-1, descending=True).values
    k = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
    mean = ordered.cumsum(-1) / k
    scatter = ordered.square().cumsum(-1) - k * mean.square()
    tau = mean - ((1 - scatter) / k).clamp(min=0).sqrt()
    size = (tau <= ordered).sum(-1, keepdim=True)
    return tau.gather(-1, size - 1)
