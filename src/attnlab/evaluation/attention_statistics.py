"""Where the attention mass lies on average: how spread out, and how much of it on pads."""

from __future__ import annotations

import torch
from torch import Tensor
from torchmetrics import Metric


class AttentionStatistics(Metric):
    """Means over all real target tokens so far, over batches and processes.

    attention_entropy: of a token's weights over the source, in nats: 0 looks at one, log(S) at all alike.
    attention_pad_mass: the share of a token's weights that lies on pads of the source, 0..1.
    """

    full_state_update = False
    entropy: Tensor
    pad_mass: Tensor
    tokens: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.add_state("entropy", torch.tensor(0.0), dist_reduce_fx="sum")
        self.add_state("pad_mass", torch.tensor(0.0), dist_reduce_fx="sum")
        self.add_state("tokens", torch.tensor(0.0), dist_reduce_fx="sum")

    def update(self, weights: Tensor | None, source_mask: Tensor, target_mask: Tensor) -> None:
        """Add a batch: weights (B, T, S), source_mask (B, S), target_mask (B, T); None where nothing attends.

        Raises:
            ValueError: shapes that do not belong together.
        """
        if weights is None:
            return
        expected = (*target_mask.shape, source_mask.shape[1])
        if tuple(weights.shape) != expected or len(source_mask) != len(target_mask):
            raise ValueError(f"weights must be (B, T, S) = {expected}, got {tuple(weights.shape)}")
        rows = weights.detach().float()  # (B, T, S); bf16 would round the logarithms
        # Rows of pads may hold anything, NaN too: they are left out before the sum, not multiplied by zero.
        entropy = torch.special.entr(rows).sum(-1)[target_mask]  # (real tokens,)
        on_pads = rows.masked_fill(source_mask[:, None, :], 0).sum(-1)[target_mask]
        self.entropy = self.entropy + entropy.sum()
        self.pad_mass = self.pad_mass + on_pads.sum()
        self.tokens = self.tokens + target_mask.sum()

    def compute(self) -> dict[str, float | None]:
        """Both means; None where there was no attention."""
        tokens = float(self.tokens)
        if tokens == 0:
            return {"attention_entropy": None, "attention_pad_mass": None}
        return {
            "attention_entropy": float(self.entropy) / tokens,
            "attention_pad_mass": float(self.pad_mass) / tokens,
        }
