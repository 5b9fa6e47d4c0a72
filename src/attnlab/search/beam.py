"""Beam search: the likeliest partial hypotheses, extended step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor

from attnlab.batch import BOS
from attnlab.errors import ExperimentError
from attnlab.model.fast.packed import PackedWeights
from attnlab.search.partial_hypotheses import PartialHypotheses, best_continuations
from attnlab.search.search import (
    Forced,
    Hypothesis,
    Search,
    Stepwise,
    attention_required,
    next_log_probs,
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
        limits = self.limits(source_mask.sum(1))
        forced = forced or {}
        keep_weights = with_attention or self.coverage_penalty > 0
        with PackedWeights():  # int8 is for the steps alone
            memory, state = model.encode(source, source_mask)
        packed = PackedWeights(self.int8)
        partial = PartialHypotheses.empty(len(source), self.size, source.device)
        last = torch.full((len(source),), BOS, device=source.device)  # (N * K,)
        found: list[list[Hypothesis]] = [[] for _ in range(len(source))]

        def add_finished(row: int, rank: int, log_prob: Tensor, has_eos: bool) -> None:
            """Add a hypothesis, whose tokens and weights are those at the time of the call."""
            sentence = int(partial.sentences[row])
            hypothesis = self._hypothesis(
                partial.tokens[row, rank],
                log_prob,
                has_eos,
                partial.weights_of(row, rank),
                source_mask[sentence],
            )
            found[sentence].append(hypothesis)

        for length in range(1, int(limits.max()) + 1):
            # 1. Score the continuations, and take twice as many as the beam: at most K of them end,
            # so K are left to go on.
            with packed:
                logits, state, step_weights = model.step(last, state, memory)
            may_end = length > self.min_length
            log_probs = next_log_probs(logits, may_end, forced.get(length - 1))
            continuations = best_continuations(partial.scores, log_probs, 2 * self.size)
            if self.coverage_penalty > 0 and step_weights is None:
                raise attention_required("search.coverage_penalty")
            if keep_weights and step_weights is not None:
                partial = partial.with_weights(step_weights)

            # 2. What ends among the best K is a finished hypothesis.
            ends = continuations.have_ended()[:, : self.size]
            for row, rank in ends.nonzero().tolist():
                parent = int(continuations.parents[row, rank])
                add_finished(row, parent, continuations.scores[row, rank], has_eos=True)

            # 3. The best K of the others go on.
            others = continuations.that_go_on(self.size)
            num_parents = partial.scores.shape[1]
            partial = partial.extended(others, missing=partial.missing - ends.sum(1))

            # 4. A sentence at its limit is cut off: the best partial hypotheses replace those that
            # are missing.
            is_cut_off = limits[partial.sentences] <= length
            left_over = is_cut_off.unsqueeze(1) & partial.fill_gaps()
            for row, rank in left_over.nonzero().tolist():
                add_finished(row, rank, partial.scores[row, rank], has_eos=False)

            # 5. The other sentences go on where a partial hypothesis may still be among the best K.
            worst = [self._worst_of_best(found[number]) for number in partial.sentences.tolist()]
            best_partial = partial.scores[:, 0] / self._length_penalty(length)
            may_improve = best_partial > partial.scores.new_tensor(worst)
            rows = (may_improve & ~is_cut_off & partial.are_present().any(1)).nonzero().squeeze(1)
            if len(rows) == 0:
                break
            rows_of_state = rows.unsqueeze(1) * num_parents + others.parents[rows]
            state = state.select(rows_of_state.flatten())
            last = others.tokens[rows].flatten()
            if len(rows) < len(partial.sentences):
                memory = memory.select(rows)
                partial = partial.select(rows)

        if not all(found):
            raise ExperimentError(
                "the search found no hypothesis, as the model's scores are no numbers; its "
                "training has diverged, or an intervention's temperature is too small"
            )
        # 6. More than K may have ended, several of them at once: return the best.
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
