"""Take the likeliest token, again and again."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from attnlab.batch import BOS, EOS
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.hypothesis import Hypothesis
from attnlab.search.search import Search, length_limits, next_log_probs


class GreedySearch(Search):
    """The likeliest token at each step; a hypothesis's score is the sum of its log-probabilities.

    Args:
        max_length: tokens to write at most, `<eos>` included.
        max_length_ratio: tokens to write at most for each source token; None for no such limit.
    """

    def __init__(self, max_length: PositiveInt, max_length_ratio: Annotated[float, Field(gt=0)] | None = None) -> None:
        self.max_length = max_length
        self.max_length_ratio = max_length_ratio

    @torch.no_grad()
    def __call__(
        self, model: Seq2Seq, source: Tensor, source_mask: Tensor, with_attention: bool = False
    ) -> list[list[Hypothesis]]:
        size = source.shape[0]
        limits = length_limits(source_mask, self.max_length, self.max_length_ratio)
        memory, state = model.encode(source, source_mask)
        alive = torch.arange(size, device=source.device)  # sentences still being written; rows of memory and state
        last = torch.full_like(alive, BOS)
        scores = torch.zeros(size, device=source.device)
        tokens: list[list[int]] = [[] for _ in range(size)]
        weights: list[list[Tensor]] = [[] for _ in range(size)]
        ended = torch.zeros(size, dtype=torch.bool, device=source.device)

        for length in range(1, int(limits.max()) + 1):
            logits, state, step_weights = model.step(last, state, memory)
            best, last = next_log_probs(logits).max(-1)
            scores[alive] += best
            ended[alive] = last == EOS
            for row, (sentence, token) in enumerate(zip(alive.tolist(), last.tolist(), strict=True)):
                if token != EOS:
                    tokens[sentence].append(token)
                if with_attention and step_weights is not None:
                    weights[sentence].append(step_weights[row])
            going_on = ((last != EOS) & (limits[alive] > length)).nonzero().squeeze(1)
            if len(going_on) == 0:
                break
            if len(going_on) < len(alive):
                alive, last = alive[going_on], last[going_on]
                memory, state = memory.select(going_on), state.select(going_on)

        return [
            [
                Hypothesis(
                    tokens[row],
                    scores[row].item(),
                    bool(ended[row]),
                    torch.stack(weights[row]).float() if weights[row] else None,
                )
            ]
            for row in range(size)
        ]
