"""Guided alignment: gold links teach the attention where to look."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import PositiveFloat
from torch import Tensor

from attnlab.training.attention_losses.attention_loss import AttentionLoss, Looks, of_real_tokens

LEAST = 1e-15  # of a weight whose logarithm is taken; a sparse one is exactly 0


class GuidedAlignment(AttentionLoss):
    """- sum_i A_t(i) log weights_t(i), with A_t equal shares of the gold links of target token t.

    Chen et al. 2016, "Guided alignment training for topic-aware neural machine translation",
    equation 8 (`cross_entropy`); Liu et al. 2016, "Neural machine translation with supervised
    attention", also try `product`, - log sum_i A_t(i) weights_t(i), and `squared`, 1/2 sum_i
    (A_t(i) - weights_t(i))². Tokens without a gold link have no such loss. Weights below 1e-15, as
    those of a sparse normaliser, count as 1e-15 and have no gradient.

    Args:
        weight: factor of the loss.
        distance: which of the three.
        links: the `sure` gold links alone, or the `possible` ones, too.
    """

    name: ClassVar[str] = "guided_alignment_loss"
    needs_links: ClassVar[bool] = True

    def __init__(
        self,
        weight: PositiveFloat,
        distance: Literal["cross_entropy", "product", "squared"],
        links: Literal["sure", "possible"],
    ) -> None:
        self.weight = weight
        self.distance = distance
        self.needs_positive_weights = distance != "squared"
        self.links = links

    def teaches_hard(self, is_noisy: bool) -> bool:
        # A logarithm teaches only where the token with the weight is the right one.
        return is_noisy or self.distance == "squared"

    def summed(self, looks: Looks) -> Tensor:
        assert looks.linked is not None
        linked = looks.linked.to(looks.weights.dtype)
        count = linked.sum(-1, keepdim=True)
        gold = linked / count.clamp(min=1)  # A
        if self.distance == "cross_entropy":
            loss = -(gold * looks.weights.clamp(min=LEAST).log()).sum(-1)
        elif self.distance == "product":
            loss = -(gold * looks.weights).sum(-1).clamp(min=LEAST).log()
        else:
            loss = (gold - looks.weights).square().sum(-1) / 2
        return of_real_tokens(loss.masked_fill(count.squeeze(-1) == 0, 0), looks)
