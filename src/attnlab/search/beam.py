"""Keep the likeliest beginnings, and grow them all."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, PositiveInt
from torch import Tensor

from attnlab.batch import BOS, EOS
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.hypothesis import Hypothesis
from attnlab.search.search import Search, length_limits, next_log_probs


class BeamSearch(Search):
    """Beam search over a whole batch, until each sentence has `size` finished hypotheses (or more, where
    several end at once) or meets its limit.

    A hypothesis's score is its log-probability over the length penalty ((5 + |Y|) / 6)^alpha of Wu et al. 2016,
    equation 14, `<eos>` counted; alpha 0 compares the plain sums. Axes: N sentences still going on, K beam.

    Args:
        size: beginnings that are kept, K; 1 is greedy search.
        length_penalty: alpha.
        max_length: tokens to write at most, `<eos>` included.
        max_length_ratio: tokens to write at most for each source token; None for no such limit.
    """

    def __init__(
        self,
        size: PositiveInt,
        length_penalty: NonNegativeFloat,
        max_length: PositiveInt,
        max_length_ratio: Annotated[float, Field(gt=0)] | None = None,
    ) -> None:
        self.size = size
        self.length_penalty = length_penalty
        self.max_length = max_length
        self.max_length_ratio = max_length_ratio

    @torch.no_grad()
    def __call__(
        self, model: Seq2Seq, source: Tensor, source_mask: Tensor, with_attention: bool = False
    ) -> list[list[Hypothesis]]:
        batch_size, beam, device = source.shape[0], self.size, source.device
        limits = length_limits(source_mask, self.max_length, self.max_length_ratio)
        memory, state = model.encode(source, source_mask)
        found: list[list[Hypothesis]] = [[] for _ in range(batch_size)]

        alive = torch.arange(batch_size, device=device)  # (N,)
        every_row_k_times = alive.repeat_interleave(beam)
        memory, state = memory.select(every_row_k_times), state.select(every_row_k_times)
        tokens = torch.empty(batch_size, beam, 0, dtype=torch.long, device=device)  # (N, K, t)
        weights: Tensor | None = None  # (N, K, t, S)
        last = torch.full((batch_size * beam,), BOS, device=device)
        # All beams begin alike: only the first may grow in the first step.
        scores = torch.full((batch_size, beam), -torch.inf, device=device)
        scores[:, 0] = 0.0

        for length in range(1, int(limits.max()) + 1):
            # 1. Score every continuation of every beginning.
            logits, state, step_weights = model.step(last, state, memory)
            log_probs = next_log_probs(logits).view(len(alive), beam, -1)
            vocabulary_size = log_probs.shape[-1]
            candidates = (scores.unsqueeze(2) + log_probs).flatten(1)  # (N, K * V)
            # 2. Take twice as many as the beam: at most K of them end, so K are left to go on.
            top_scores, top = candidates.topk(min(2 * beam, candidates.shape[1]), dim=1)
            parents, next_tokens = top // vocabulary_size, top % vocabulary_size
            if with_attention and step_weights is not None:
                step_weights = step_weights.float().view(len(alive), beam, 1, -1)
                weights = step_weights if weights is None else torch.cat([weights, step_weights], dim=2)

            # 3. What ends among the best K is a finished hypothesis.
            ends = (next_tokens == EOS) & top_scores.isfinite()
            for row, rank in ends[:, :beam].nonzero().tolist():
                parent = int(parents[row, rank])
                self._add(
                    found[int(alive[row])],
                    tokens[row, parent],
                    top_scores[row, rank],
                    weights,
                    row,
                    parent,
                    True,
                )

            # 4. The best K of the others go on, in the order of their scores.
            scores, order = top_scores.masked_fill(next_tokens == EOS, -torch.inf).topk(beam, dim=1)
            parents, next_tokens = parents.gather(1, order), next_tokens.gather(1, order)
            rows = torch.arange(len(alive), device=device).unsqueeze(1)
            tokens = torch.cat([tokens[rows, parents], next_tokens.unsqueeze(2)], dim=2)
            weights = None if weights is None else weights[rows, parents]

            # 5. A sentence is done with K finished hypotheses, or cut off at its limit.
            is_full = torch.tensor([len(found[row]) >= beam for row in alive.tolist()], device=device)
            cut_off = ~is_full & (limits[alive] <= length)
            for row in cut_off.nonzero().squeeze(1).tolist():
                for rank in range(beam - len(found[int(alive[row])])):
                    if scores[row, rank].isfinite():
                        self._add(
                            found[int(alive[row])],
                            tokens[row, rank],
                            scores[row, rank],
                            weights,
                            row,
                            rank,
                            False,
                        )
            going_on = (~is_full & ~cut_off & scores.isfinite().any(1)).nonzero().squeeze(1)
            if len(going_on) == 0:
                break
            state = state.select((going_on.unsqueeze(1) * beam + parents[going_on]).flatten())
            last = next_tokens[going_on].flatten()
            if len(going_on) < len(alive):
                # The beams of one sentence share their memory, so it changes with the sentences alone.
                first_beams = going_on.unsqueeze(1) * beam
                memory = memory.select((first_beams + torch.arange(beam, device=device)).flatten())
                alive, scores, tokens = alive[going_on], scores[going_on], tokens[going_on]
                weights = None if weights is None else weights[going_on]

        return [sorted(hypotheses, key=lambda h: -h.score) for hypotheses in found]

    def _add(
        self,
        found: list[Hypothesis],
        tokens: Tensor,
        score: Tensor,
        weights: Tensor | None,
        row: int,
        rank: int,
        ended: bool,
    ) -> None:
        length = len(tokens) + ended
        penalty = ((5 + length) / 6) ** self.length_penalty
        kept = None if weights is None else weights[row, rank].clone()
        found.append(Hypothesis(tokens.tolist(), score.item() / penalty, ended, kept))
