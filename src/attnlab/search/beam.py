"""Beam search: the likeliest partial hypotheses, extended step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor

from attnlab.batch import BOS, EOS
from attnlab.errors import ExperimentError
from attnlab.model.fast.packed import PackedWeights
from attnlab.search.search import (
    Forced,
    Hypothesis,
    Search,
    Stepwise,
    attention_required,
    next_log_probs,
    topk_by_blocks,
)


@dataclass(frozen=True)
class BeamSearch(Search):
    """Beam search over a whole batch.

    A hypothesis's score is that of Wu et al. 2016, equation 14: its log-probability over the length
    penalty ((5 + |Y|) / 6)^alpha, `<eos>` counted, and beta times the coverage penalty
    (`log_coverage`). Alpha 0 and beta 0 compare the plain sums. Axes: N sentences still being
    decoded, K beam.

    The search of a sentence ends at its limit, or when it has `size` finished hypotheses and no
    partial one beats the worst of the best `size` of them. A partial one counts with its present
    log-probability and length, and with no coverage penalty, which is at most 0. With alpha 0 no
    continuation exceeds that, so the search ends exactly when nothing can change (Huang et al.
    2017, section 3, who keep one finished hypothesis). With alpha above 0 this is a heuristic, the
    default one of Hugging Face Transformers (`early_stopping=False`): up to alpha 1, only a
    continuation whose tokens are likelier than those before exceeds it. The bound that holds for
    every continuation divides by the length penalty of the limit, and hardly ends a search before
    its limit; it would also part a beam of one from greedy search. fairseq ends at `size` finished
    hypotheses, OpenNMT-py at `n_best` once the best candidate has ended.

    Args:
        size: partial hypotheses of each step, K; 1 is greedy search, unless coverage counts.
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
        if self.coverage_penalty > 0:
            return "coverage_penalty"
        return super().needs_attention

    @torch.no_grad()
    def __call__(
        self,
        model: Stepwise,
        source: Tensor,
        source_mask: Tensor,
        with_attention: bool = False,
        forced: Forced = None,
    ) -> list[list[Hypothesis]]:
        batch_size = source.shape[0]
        beam = self.size
        device = source.device
        limits = self.limits(source_mask.sum(1))
        forced = forced or {}
        keep_weights = with_attention or self.coverage_penalty > 0
        with PackedWeights():  # int8 is for the steps alone
            memory, state = model.encode(source, source_mask)
        packed = PackedWeights(self.int8)
        found: list[list[Hypothesis]] = [[] for _ in range(batch_size)]

        # Before the first step a sentence has one empty hypothesis, from then on K of them (or as
        # many as exist). They stand side by side and share their sentence's memory.
        alive = torch.arange(batch_size, device=device)  # (N,) numbers of the sentences
        missing = torch.full((batch_size,), beam, device=device)  # (N,) finished hypotheses
        tokens = torch.empty(batch_size, 1, 0, dtype=torch.long, device=device)  # (N, K, t)
        weights: Tensor | None = None  # (N, K, t, S)
        last = torch.full((batch_size,), BOS, device=device)  # (N * K,)
        scores = torch.zeros(batch_size, 1, device=device)  # (N, K)

        def add_finished(row: int, rank: int, log_prob: Tensor, has_eos: bool) -> None:
            """Add a hypothesis, whose tokens and weights are those at the time of the call."""
            sentence = int(alive[row])
            its_weights = None if weights is None else weights[row, rank].clone()
            hypothesis = self._hypothesis(
                tokens[row, rank], log_prob, has_eos, its_weights, source_mask[sentence]
            )
            found[sentence].append(hypothesis)

        for length in range(1, int(limits.max()) + 1):
            # 1. Score every continuation of every partial hypothesis.
            with packed:
                logits, state, step_weights = model.step(last, state, memory)
            may_end = length > self.min_length
            log_probs = next_log_probs(logits, may_end, forced.get(length - 1))  # (N * K, V)
            vocabulary_size = log_probs.shape[-1]
            continued = log_probs.view(*scores.shape, vocabulary_size).add_(scores.unsqueeze(2))
            candidates = continued.flatten(1)  # (N, K * V)

            if self.coverage_penalty > 0 and step_weights is None:
                raise attention_required("search.coverage_penalty")
            if keep_weights and step_weights is not None:
                step_weights = step_weights.float().view(*scores.shape, 1, -1)  # (N, K, 1, S)
                if weights is None:
                    weights = step_weights
                else:
                    weights = torch.cat([weights, step_weights], dim=2)

            # 2. Take twice as many as the beam: at most K of them end, so K are left to go on.
            top_scores, top = topk_by_blocks(candidates, min(2 * beam, candidates.shape[1]))
            parents = top // vocabulary_size
            next_tokens = top % vocabulary_size

            # 3. What ends among the best K is a finished hypothesis.
            is_eos = next_tokens == EOS
            ends = (is_eos & top_scores.isfinite())[:, :beam]
            for row, rank in ends.nonzero().tolist():
                parent = int(parents[row, rank])
                add_finished(row, parent, top_scores[row, rank], has_eos=True)
            missing = missing - ends.sum(1)

            # 4. The best K of the others go on, in the order of their scores.
            num_parents = scores.shape[1]
            others = top_scores.masked_fill(is_eos, -torch.inf)
            scores, order = others.topk(min(beam, others.shape[1]), dim=1)
            parents = parents.gather(1, order)
            next_tokens = next_tokens.gather(1, order)
            rows = torch.arange(len(alive), device=device).unsqueeze(1)
            tokens = torch.cat([tokens[rows, parents], next_tokens.unsqueeze(2)], dim=2)
            weights = None if weights is None else weights[rows, parents]

            # 5. A sentence at its limit is cut off: the best partial hypotheses replace those that
            # are missing.
            is_cut_off = limits[alive] <= length
            exists = scores.isfinite()
            ranks = torch.arange(scores.shape[1], device=device)
            replaces_missing = ranks < missing.unsqueeze(1)
            left_over = is_cut_off.unsqueeze(1) & replaces_missing & exists
            for row, rank in left_over.nonzero().tolist():
                add_finished(row, rank, scores[row, rank], has_eos=False)

            # 6. The other sentences go on where a partial hypothesis may still be among the best K.
            worst = [self._worst_of_best(found[sentence]) for sentence in alive.tolist()]
            to_beat = scores.new_tensor(worst)  # (N,)
            best_partial = scores[:, 0] / self._length_penalty(length)
            is_going_on = (best_partial > to_beat) & ~is_cut_off & exists.any(1)
            going_on = is_going_on.nonzero().squeeze(1)
            if len(going_on) == 0:
                break
            rows_of_state = going_on.unsqueeze(1) * num_parents + parents[going_on]
            state = state.select(rows_of_state.flatten())
            last = next_tokens[going_on].flatten()
            if len(going_on) < len(alive):
                memory = memory.select(going_on)
                alive = alive[going_on]
                missing = missing[going_on]
                scores = scores[going_on]
                tokens = tokens[going_on]
                weights = None if weights is None else weights[going_on]

        if not all(found):
            raise ExperimentError(
                "the search found no hypothesis, as the model's scores are no numbers; its "
                "training has diverged, or an intervention's temperature is too small"
            )
        # 7. More than K may have ended, several of them at once: return the best.
        return [self._best(hypotheses, with_attention) for hypotheses in found]

    def _hypothesis(
        self, tokens: Tensor, log_prob: Tensor, has_eos: bool, weights: Tensor | None, real: Tensor
    ) -> Hypothesis:
        """A hypothesis with its score; real (S,) says which source tokens are no pads."""
        score = log_prob.item() / self._length_penalty(len(tokens) + has_eos)
        if self.coverage_penalty > 0:
            assert weights is not None
            score += self.coverage_penalty * log_coverage(weights, real).item()
        return Hypothesis(tokens.tolist(), score, has_eos, weights)

    def _length_penalty(self, length: int) -> float:
        return float(((5 + length) / 6) ** self.length_penalty)

    def _worst_of_best(self, hypotheses: list[Hypothesis]) -> float:
        """The score that the best K of a sentence's hypotheses have at least; -inf while K lack."""
        if len(hypotheses) < self.size:
            return -math.inf
        ranked = sorted((hypothesis.score for hypothesis in hypotheses), reverse=True)
        return ranked[self.size - 1]

    def _best(self, hypotheses: list[Hypothesis], with_attention: bool) -> list[Hypothesis]:
        """The hypotheses of a sentence that come back, best first."""
        ranked = sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
        best = ranked[: self.n_best]
        if with_attention:
            return best
        return [replace(hypothesis, attention_weights=None) for hypothesis in best]


def log_coverage(weights: Tensor, real: Tensor) -> Tensor:
    """cp(X; Y) / beta of Wu et al. 2016, equation 14: sum_i log(min(sum_j p_ij, 1)), at most 0.

    weights (T, S) of a whole hypothesis, `<eos>` included where it came; real (S,) says which
    source tokens are no pads, `<eos>` among them. A token that no weight at all fell on counts with
    the least number above 0.
    """
    attended = weights.sum(0)[real].clamp(torch.finfo(torch.float32).tiny, 1.0)
    return attended.log().sum()
