"""The entropy of the weights as a loss: sharper attention, or flatter."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from attnlab.training.attention_losses.attention_loss import AttentionLoss, Looks, of_real_tokens


class Entropy(AttentionLoss):
    """- sum_i w_i log w_i of each target token, in nats.

    Args:
        weight: factor; above 0 the weights become sharper, below 0 flatter.
    """

    name: ClassVar[str] = "attention_entropy_loss"
    needs_positive_weights = True

    def __init__(self, weight: float) -> None:
        if weight == 0:
            raise ValueError("weight must not be 0; choose training/attention_loss=none")
        self.weight = weight

    def teaches_hard(self, is_noisy: bool) -> bool:
        return False  # their entropy is 0

    def summed(self, looks: Looks) -> Tensor:
        # x log x has no gradient at 0, where a pad or a sparse normaliser puts a weight.
        positive = looks.weights.clamp(min=torch.finfo(looks.weights.dtype).tiny)
        return of_real_tokens(-(looks.weights * positive.log()).sum(-1), looks)
