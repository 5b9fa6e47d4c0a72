"""Attention(Q, K, V): score, mask, normalise, average; one head or several.

Each of them may have coverage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor, nn

from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.memory import Memory, count_positions
from attnlab.model.attention.score import Score, refuse_former_names
from attnlab.model.encoders.encoder import Encoded
from attnlab.model.normalisers.hard import Hard
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.scopes import Scope, Window


class Coverage(nn.Module):
    """projected keys + w c_t, with c_t = sum_{t' < t} weights_t'.

    See et al. 2017, equations 10 and 11.

    The additive score so becomes v · tanh(W s + U h_i + w c_i). The loss sum_i min(weights_i, c_i)
    of each target token (equation 12) punishes looking again at the same place.

    Args:
        loss_weight: factor of that loss beside the negative log-likelihood; 0 leaves it out.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("key_size",)

    def __init__(self, loss_weight: NonNegativeFloat, *, key_size: int) -> None:
        super().__init__()
        self.loss_weight = loss_weight
        self.w = nn.Linear(1, key_size, bias=False)

    def forward(self, keys: Tensor, coverage: Tensor) -> Tensor:
        """projected keys (B, S, A) and coverage (B, S) -> keys (B, S, A)."""
        return keys + self.w(coverage.unsqueeze(2).to(keys.dtype))


def coverage_loss(weights: Tensor, coverage: Tensor) -> Tensor:
    """sum_i min(weights_i, c_i), the mean over heads: weights and coverage (B, N, S) -> (B,)."""
    return torch.minimum(weights, coverage).sum(-1).mean(1)


class Attention(nn.Module):
    """context = normalise(score(Q, K)) V.

    The score is minus infinity before the normaliser wherever nothing may be seen.
    """

    heads = 1

    def __init__(
        self, score: Score, normaliser: Normaliser, scope: Scope, coverage: Coverage | None = None
    ) -> None:
        super().__init__()
        refuse_former_names(score)
        if isinstance(normaliser, Hard) and getattr(scope, "renormalise", False):
            raise ValueError(
                "one token has all the weight, so that a renormalised window changes nothing, and "
                "its centre is never learned; choose model.scope.renormalise=false, or another "
                "model/normaliser than hard and gumbel"
            )
        self.score = score
        self.normaliser = normaliser
        self.scope = scope
        self.coverage = coverage

    @property
    def rows_sum_to_one(self) -> bool:
        """Whether the normaliser makes distributions of the scores."""
        return self.normaliser.rows_sum_to_one

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
            context (B, T, D) and attention weights (B, 1, T, S), which are exactly 0 at pads and
            sum to 1 over S (unless the normaliser's rows need not, or a local-p scope does not
            renormalise).
        """
        scores, window = self.scores(query, memory, t, coverage)
        return self.average(scores, window, memory, t)

    def scores(
        self, query: Tensor, memory: Memory, t: Tensor, coverage: Tensor | None = None
    ) -> tuple[Tensor, Window]:
        """The scores (B, T, S), minus infinity where nothing may be seen, and the window.

        Arguments as for `forward`.
        """
        assert memory.keys is not None
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
        return scores, window

    def average(
        self, scores: Tensor, window: Window, memory: Memory, t: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What `forward` returns, of the scores and the window."""
        assert memory.values is not None

        # 3. Make weights of the scores, and average the values by them.
        def weigh(scores: Tensor) -> Tensor:
            return window.reweigh(self.normaliser(scores))

        change, positions = memory.intervention, memory.positions
        weights = weigh(scores) if change is None else change.weigh(scores, weigh, positions, t)
        return weights.to(memory.values.dtype) @ memory.values, weights.unsqueeze(1)


class MultiHeadAttention(nn.Module):
    """concat(head_1, ..., head_N) W_O with head_i = Attention(Q W_Q,i, K W_K,i, V W_V,i).

    Vaswani et al. 2017, section 3.2.2, for any score that compares contents.

    Args:
        heads: their number N.
        size: width of the projections of each head.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("head", "query_size", "value_size")

    def __init__(
        self,
        heads: PositiveInt,
        size: PositiveInt,
        *,
        head: Callable[[int, int], Attention],
        query_size: int,
        value_size: int,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.W_Q = nn.Linear(query_size, heads * size, bias=False)
        self.W_K = nn.Linear(value_size, heads * size, bias=False)
        self.W_V = nn.Linear(value_size, heads * size, bias=False)
        self.W_O = nn.Linear(heads * size, value_size, bias=False)
        attentions = [head(size, size) for _ in range(heads)]
        self.attentions: Sequence[Attention] = nn.ModuleList(attentions)  # type: ignore[assignment]
        if any(attention.score.by_position for attention in self.attentions):
            raise ValueError(
                "the location and uniform scores have no keys that heads could project; choose "
                "model/heads=one"
            )

    @property
    def coverage(self) -> Coverage | None:
        """That of the first head: they all have one, or none has."""
        return self.attentions[0].coverage

    @property
    def rows_sum_to_one(self) -> bool:
        """As that of the first head: they all have a normaliser of one kind."""
        return self.attentions[0].rows_sum_to_one

    def project(self, outputs: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Encoder outputs (B, S, D) -> keys (B, N, S, A) and values (B, N, S, size)."""
        keys = self.W_K(outputs).chunk(self.heads, dim=-1)
        values = self.W_V(outputs).chunk(self.heads, dim=-1)
        projected = [
            attention.project(key, positions)[0]
            for attention, key in zip(self.attentions, keys, strict=True)
        ]
        return torch.stack(projected, dim=1), torch.stack(values, dim=1)

    def forward(
        self, query: Tensor, memory: Memory, t: Tensor, coverage: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As `Attention.forward`, for coverage (B, N, S) and attention weights (B, N, T, S).

        The context is (B, T, D).
        """
        queries = self.W_Q(query).chunk(self.heads, dim=-1)
        contexts = []
        weights = []
        for i, attention in enumerate(self.attentions):
            own_coverage = None if coverage is None else coverage[:, i : i + 1]
            own_context, own_weights = attention(queries[i], memory.head(i), t, own_coverage)
            contexts.append(own_context)
            weights.append(own_weights)
        return self.W_O(torch.cat(contexts, dim=-1)), torch.cat(weights, dim=1)


def remember(
    encoded: Encoded,
    source_mask: Tensor,
    masked: bool,
    attention: Attention | MultiHeadAttention | None,
    intervention: Intervention | None = None,
) -> Memory:
    """The memory of a batch, with the keys projected once for all steps.

    Args:
        source_mask: (B, S).
        masked: False lets the attention weigh pads, unless the intervention says otherwise.
        attention: None where nothing attends.
    """
    if intervention is not None and intervention.mask_pads is not None:
        masked = intervention.mask_pads
    positions = count_positions(source_mask)
    # A masked pad may stand beyond the longest source; its position is never looked at.
    seen = positions.masked_fill(~source_mask, 0) if masked else positions
    keys, values = (None, None) if attention is None else attention.project(encoded.outputs, seen)
    memory = Memory(
        summary=encoded.final.hidden[-1],
        keys=keys,
        values=values,
        mask=source_mask if masked else None,
        positions=positions,
        lengths=source_mask.sum(1),
    )
    if intervention is None or not intervention.changes_weights:
        return memory
    return memory.under(intervention)
