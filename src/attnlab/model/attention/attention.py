"""Attention(Q, K, V): score, mask, normalise, average."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.attention.score import Score


class Attention(nn.Module):
    """context = softmax(score(Q, K)) V, with minus infinity at pads before the softmax."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Attend from every query to every key.

        Args:
            query: (B, T, H).
            keys: (B, S, A), as `score.project_keys` returned them.
            values: (B, S, D).
            mask: (B, S), True at real tokens; None lets pads be weighed too.

        Returns:
            context (B, T, D) and attention weights (B, T, S), which sum to 1 over S and are exactly 0 at pads.
        """
        scores = self.score(query, keys)  # (B, T, S)
        if mask is not None:
            scores = scores.masked_fill(~mask.unsqueeze(1), -torch.inf)
        # In half precision the weights of a long sentence would not sum to 1.
        weights = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        return weights.to(values.dtype) @ values, weights
