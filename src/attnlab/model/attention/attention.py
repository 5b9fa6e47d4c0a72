"""Attention(Q, K, V): score, mask, normalise, average."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.attention.coverage import Coverage
from attnlab.model.attention.memory import Memory
from attnlab.model.attention.score import Score
from attnlab.model.normaliser.normaliser import Normaliser
from attnlab.model.scope.scope import Scope


class Attention(nn.Module):
    """context = normalise(score(Q, K)) V, with minus infinity before the normaliser wherever nothing may be seen."""

    heads = 1

    def __init__(self, score: Score, normaliser: Normaliser, scope: Scope, coverage: Coverage | None = None) -> None:
        super().__init__()
        self.score = score
        self.normaliser = normaliser
        self.scope = scope
        self.coverage = coverage

    def project(self, outputs: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Encoder outputs (B, S, D) and positions (B, S) -> keys (B, S, A) and values (B, S, D)."""
        return self.score.project_keys(positions if self.score.by_position else outputs), outputs

    def forward(
        self, query: Tensor, memory: Memory, t: Tensor, coverage: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend from every query to every key.

        Args:
            query: (B, T, H).
            memory: keys (B, S, A) and values (B, S, D), as `project` returned them, and the mask.
            t: (B, T), the position of each query in the target.
            coverage: (B, 1, S), the weights so far, where this attention has coverage; T is then 1.

        Returns:
            context (B, T, D) and attention weights (B, 1, T, S), which are exactly 0 at pads and sum to 1 over S
            (unless a local-p scope does not renormalise).
        """
        assert memory.keys is not None
        assert memory.values is not None
        keys = memory.keys
        # 1. Add to each key how much of it was seen.
        if self.coverage is not None and coverage is not None:
            keys = self.coverage(keys, coverage[:, 0])
        # 2. Score every key, and hide pads and what lies outside of the window.
        scores = self.score(query, keys)  # (B, T, S)
        window = self.scope(query, t, memory.positions, memory.lengths)
        if memory.mask is not None:
            scores = scores.masked_fill(~memory.mask.unsqueeze(1), -torch.inf)
        if window.inside is not None:
            scores = scores.masked_fill(~window.inside, -torch.inf)
        # 3. Make weights of the scores, and average the values by them.
        weights = window.reweigh(self.normaliser(scores))
        return weights.to(memory.values.dtype) @ memory.values, weights.unsqueeze(1)
