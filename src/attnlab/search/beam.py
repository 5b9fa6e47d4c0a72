"""Beam search: the likeliest partial hypotheses, extended step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor

from attnlab.batch import BOS, EOS
from attnlab.model.fast.packed import PackedWeights
from attnlab.search.search import (
    Forced,
    Hypothesis,
    Search,
    Stepwise,
    likeliest,
    next_log_probs,
    without_attention,
)


@dataclass(frozen=True)
class BeamSearch(Search):
    """Beam search over a whole batch.

    The search of a sentence ends when it has `size` finished hypotheses or meets its limit. A
    hypothesis's score is that of Wu et al. 2016, equation 14: its log-probability over the length
    penalty ((5 + |Y|) / 6)^alpha, `<eos>` counted, and beta times the coverage penalty
    (`log_coverage`). Alpha 0 and beta 0 compare the plain sums. Axes: N sentences still being
    decoded, K beam.

    Args:
        size: partial hypotheses of each step, K; 1 is greedy search.
        length_penalty: alpha.
        coverage_penalty: beta; above 0 it needs a model with attention.
        n_best: how many hypotheses of a sentence come back at most, the best of those found; at
            most `size`.
    """

    size: PositiveInt
    length_penalty: NonNegativeFloat
    max_length: PositiveInt
    max_length_ratio: Annotated[float, Field(gt=0)] | None = None
    coverage_penalty: NonNegativeFloat = 0.0
    min_length: NonNegativeInt = 0
    n_best: PositiveInt = 1
    replace_unknown: bool = False
    int8: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_best > self.size:
            raise ValueError(
                f"n_best must be at most the beam's size, which is {self.size}, got {self.n_best}"
            )

    @property
    def needs_attention(self) -> str | None:
        return "coverage_penalty" if self.coverage_penalty > 0 else super().needs_attention

    @torch.no_grad()
    def __call__(
        self,
        model: Stepwise,
        source: Tensor,
        source_mask: Tensor,
        with_attention: bool = False,
        forced: Forced = None,
    ) -> list[list[Hypothesis]]:
        batch_size, beam, device = source.shape[0], self.size, source.device
        limits = self.limits(source_mask.sum(1))
        with PackedWeights():  # int8 is for the steps alone
            memory, state = model.encode(source, source_mask)
        packed = PackedWeights(self.int8)
        found: list[list[Hypothesis]] = [[] for _ in range(batch_size)]

        # Before the first step a sentence has one empty hypothesis, from then on K of them (or as
        # many as exist). They stand side by side and share their sentence's memory.
        alive = torch.arange(batch_size, device=device)  # (N,)
        missing = torch.full((batch_size,), beam, device=device)  # (N,) finished hypotheses
        tokens = torch.empty(batch_size, 1, 0, dtype=torch.long, device=device)  # (N, K, t)
        weights: Tensor | None = None  # (N, K, t, S)
        last = torch.full((batch_size,), BOS, device=device)
        scores = torch.zeros(batch_size, 1, device=device)  # (N, K)

        def put_aside(row: int, rank: int, log_prob: Tensor, ended: bool) -> None:
            sentence = int(alive[row])
            its_weights = None if weights is None else weights[row, rank].clone()
            hypothesis = self._hypothesis(
                tokens[row, rank], log_prob, ended, its_weights, source_mask[sentence]
            )
            found[sentence].append(hypothesis)

        for length in range(1, int(limits.max()) + 1):
            # 1. Score every continuation of every partial hypothesis.
            with packed:
                logits, state, step_weights = model.step(last, state, memory)
            may_end, token = length > self.min_length, (forced or {}).get(length - 1)
            log_probs = next_log_probs(logits, may_end, token).view(*scores.shape, -1)
            vocabulary_size = log_probs.shape[-1]
            candidates = log_probs.add_(scores.unsqueeze(2)).flatten(1)  # (N, K * V)
            if self.coverage_penalty > 0 and step_weights is None:
                raise without_attention("search.coverage_penalty")
            if (with_attention or self.coverage_penalty > 0) and step_weights is not None:
                step_weights = step_weights.float().view(*scores.shape, 1, -1)
                weights = (
                    step_weights if weights is None else torch.cat([weights, step_weights], dim=2)
                )
            # 2. Take twice as many as the beam: at most K of them end, so K are left to go on.
            top_scores, top = likeliest(candidates, min(2 * beam, candidates.shape[1]))
            parents, next_tokens = top // vocabulary_size, top % vocabulary_size

            # 3. What ends among the best K is a finished hypothesis.
            ends = (next_tokens == EOS) & top_scores.isfinite()
            for row, rank in ends[:, :beam].nonzero().tolist():
                put_aside(row, int(parents[row, rank]), top_scores[row, rank], True)

            # 4. The best K of the others go on, in the order of their scores.
            others, width = top_scores.masked_fill(next_tokens == EOS, -torch.inf), scores.shape[1]
            scores, order = others.topk(min(beam, others.shape[1]), dim=1)
            parents, next_tokens = parents.gather(1, order), next_tokens.gather(1, order)
            rows = torch.arange(len(alive), device=device).unsqueeze(1)
            tokens = torch.cat([tokens[rows, parents], next_tokens.unsqueeze(2)], dim=2)
            weights = None if weights is None else weights[rows, parents]

            # 5. A sentence is done with K finished hypotheses, or cut off at its limit.
            missing = missing - ends[:, :beam].sum(1)
            cut_off = limits[alive] <= length
            left_over = cut_off.unsqueeze(1) & (
                torch.arange(scores.shape[1], device=device) < missing.unsqueeze(1)
            )
            for row, rank in (left_over & scores.isfinite()).nonzero().tolist():
                put_aside(row, rank, scores[row, rank], False)
            going_on = ((missing > 0) & ~cut_off & scores.isfinite().any(1)).nonzero().squeeze(1)
            if len(going_on) == 0:
                break
            state = state.select((going_on.unsqueeze(1) * width + parents[going_on]).flatten())
            last = next_tokens[going_on].flatten()
            if len(going_on) < len(alive):
                memory = memory.select(going_on)
                alive, missing = alive[going_on], missing[going_on]
                scores, tokens = scores[going_on], tokens[going_on]
                weights = None if weights is None else weights[going_on]

        # 6. More than K may have ended, several of them at once: return the best.
        best = [sorted(hypotheses, key=lambda h: -h.score)[: self.n_best] for hypotheses in found]
        return (
            best
            if with_attention
            else [[replace(h, attention_weights=None) for h in several] for several in best]
        )

    def _hypothesis(
        self, tokens: Tensor, log_prob: Tensor, ended: bool, weights: Tensor | None, real: Tensor
    ) -> Hypothesis:
        length = len(tokens) + ended
        score = log_prob.item() / ((5 + length) / 6) ** self.length_penalty
        if self.coverage_penalty > 0:
            assert weights is not None
            score += self.coverage_penalty * log_coverage(weights, real).item()
        return Hypothesis(tokens.tolist(), score, ended, weights)


def log_coverage(weights: Tensor, real: Tensor) -> Tensor:
    """cp(X; Y) / beta of Wu et al. 2016, equation 14: sum_i log(min(sum_j p_ij, 1)), at most 0.

    weights (T, S) of a whole hypothesis, `<eos>` included where it came; real (S,) says which
    source tokens are no pads, `<eos>` among them. A token that no weight at all fell on counts with
    the least number above 0.
    """
    attended = weights.sum(0)[real].clamp(torch.finfo(torch.float32).tiny, 1.0)
    return attended.log().sum()
