"""Entmax: between softmax and sparsemax."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32
from attnlab.model.normalisers.threshold import threshold_of_powers, threshold_of_squares

_LEAST_ALPHA = 1.001


class Entmax(Normaliser):
    """w_i = [(alpha - 1) z_i - tau]_+^(1 / (alpha - 1)), with the one tau that makes the sum 1.

    Peters, Niculae and Martins 2019, section 3. Near alpha = 1 it is softmax, at 2 sparsemax; in
    between, weights of unlikely tokens are exactly 0. Nearer to 1 than 1.001, single precision has
    too few digits for the power.

    Args:
        alpha: from 1.001 to 2; where it is learned, its first value, below 2.
        learned: whether alpha is learned, of each head by itself, as 1 + sigmoid(a), but at least
            1.001 (Correia, Niculae and Martins 2019).
    """

    is_sparse = True
    of_equal_scores = "uniform"

    def __init__(self, alpha: Annotated[float, Field(ge=1.001, le=2)], learned: bool) -> None:
        super().__init__()
        if learned and alpha == 2:
            raise ValueError(
                "alpha must start below 2 where it is learned, for it is learned as "
                "1 + sigmoid(a); choose alpha=1.5, say, or learned=false"
            )
        self.fixed_alpha = alpha
        start = torch.tensor(alpha - 1, dtype=torch.float64).logit().to(torch.get_default_dtype())
        self.a = nn.Parameter(start) if learned else None

    @property
    def alpha(self) -> Tensor:
        """(), what it is now."""
        if self.a is None:
            return torch.tensor(self.fixed_alpha, dtype=torch.float64)
        alpha = 1 + self.a.sigmoid()
        # With the gradient that it has without the limit, so that it can leave it.
        return alpha + (_LEAST_ALPHA - alpha).clamp(min=0).detach()

    def forward(self, scores: Tensor) -> Tensor:
        z = at_least_float32(scores)
        # A copy from the processor would let a GPU wait.
        alpha = z.new_full((), self.fixed_alpha) if self.a is None else self.alpha.to(z.dtype)
        is_three_halves = self.a is None and self.fixed_alpha == 1.5
        weights: Tensor = _Entmax.apply(z, alpha, is_three_halves)
        return weights


class _Entmax(torch.autograd.Function):
    """The weights, and their gradients in closed form: nothing of the search for tau is kept."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, alpha: Tensor, is_three_halves: bool) -> Tensor:
        x = (alpha - 1) * (z - z.amax(-1, keepdim=True))
        if is_three_halves:
            weights = (x - threshold_of_squares(x)).clamp(min=0).square()
        else:
            power = 1 / (alpha - 1)
            weights = (x - threshold_of_powers(x, power)).clamp(min=0) ** power
        weights = weights / weights.sum(-1, keepdim=True)  # tau is right up to rounding
        ctx.save_for_backward(weights, alpha)
        ctx.is_three_halves = is_three_halves
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:
        weights, alpha = ctx.saved_tensors
        # 1. By the scores: diag(s) - s s^T / sum(s) with s_i = w_i^(2 - alpha) where w_i > 0
        # (Peters et al. 2019, section 3).
        if ctx.is_three_halves:
            # At least the smallest number, so that its root has a derivative.
            tiny = torch.finfo(weights.dtype).tiny
            s = weights.clamp(min=tiny).sqrt() * weights.sign()
        else:
            seen = weights > 0
            s = torch.where(seen, weights, 1) ** (2 - alpha) * seen
        share = s / s.sum(-1, keepdim=True)
        of_scores = s * gradient - share * (s * gradient).sum(-1, keepdim=True)
        if not ctx.needs_input_grad[1]:
            return of_scores, None, None

        # 2. By alpha (Correia et al. 2019, proposition 1).
        surprise = -torch.special.xlogy(weights, weights)
        of_each = (weights - share) / (alpha - 1) ** 2
        of_each = of_each + (surprise - share * surprise.sum(-1, keepdim=True)) / (alpha - 1)
        return of_scores, (gradient * of_each).sum(), None
