"""Autoregressive decoding without a beam, each token chosen once, and greedy search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor

from attnlab.batch import BOS, EOS
from attnlab.model.fast.packed import PackedWeights
from attnlab.search.search import (
    Forced,
    Hypothesis,
    Search,
    Stepwise,
    next_log_probs,
    topk_by_blocks,
)

Choose = Callable[[Tensor, Tensor, int], Tensor]
"""Chooses the next token of each of N hypotheses: -> tokens (N,).

Its arguments are the log-probabilities (N, V), the numbers of the hypotheses, and how many tokens
each has.
"""


@torch.no_grad()
def decode_autoregressively(
    model: Stepwise,
    source: Tensor,
    source_mask: Tensor,
    limits: Tensor,
    min_length: int,
    choose: Choose,
    copies: int = 1,
    with_attention: bool = False,
    forced: Forced = None,
    int8: bool = False,
) -> list[Hypothesis]:
    """`copies` hypotheses of each sentence, side by side, decoded token by token.

    Their scores are the sums of the log-probabilities. Axes: R = B * copies hypotheses, N of them
    still being written.

    Args:
        limits: (B,) tokens to write at most, `<eos>` included.
        min_length: tokens to write before `<eos>` may come.
    """
    forced = forced or {}
    with PackedWeights():  # int8 is for the steps alone
        memory, state = model.encode(source, source_mask)
    packed = PackedWeights(int8)
    num_hypotheses = len(source) * copies  # R
    alive = torch.arange(num_hypotheses, device=source.device)  # (N,) numbers of the hypotheses
    if copies > 1:
        sentences = alive // copies
        memory = memory.select(sentences)
        state = state.select(sentences)
        limits = limits[sentences]

    last = torch.full_like(alive, BOS)  # (N,)
    scores = torch.zeros(num_hypotheses, device=source.device)
    ended = torch.zeros(num_hypotheses, dtype=torch.bool, device=source.device)
    tokens: list[list[int]] = [[] for _ in range(num_hypotheses)]
    weights: list[list[Tensor]] = [[] for _ in range(num_hypotheses)]

    for written in range(int(limits.max())):
        # 1. How likely is each next token?
        with packed:
            logits, state, step_weights = model.step(last, state, memory)
        may_end = written >= min_length
        log_probs = next_log_probs(logits, may_end, forced.get(written))  # (N, V)

        # 2. Take one.
        last = choose(log_probs, alive, written)
        scores[alive] += log_probs.gather(1, last.unsqueeze(1)).squeeze(1)
        ended[alive] = last == EOS
        for row, (number, token) in enumerate(zip(alive.tolist(), last.tolist(), strict=True)):
            if token != EOS:
                tokens[number].append(token)
            if with_attention and step_weights is not None:
                weights[number].append(step_weights[row])

        # 3. Go on with those that have neither ended nor met their limit.
        is_going_on = (last != EOS) & (limits[alive] > written + 1)
        going_on = is_going_on.nonzero().squeeze(1)
        if len(going_on) == 0:
            break
        if len(going_on) < len(alive):
            alive = alive[going_on]
            last = last[going_on]
            memory = memory.select(going_on)
            state = state.select(going_on)

    hypotheses = []
    records = zip(tokens, scores.tolist(), ended.tolist(), weights, strict=True)
    for its_tokens, score, finished, rows in records:
        attention_weights = torch.stack(rows).float() if rows else None  # (T, S)
        hypotheses.append(Hypothesis(its_tokens, score, finished, attention_weights))
    return hypotheses


@dataclass(frozen=True)
class GreedySearch(Search):
    """The likeliest token at each step.

    A hypothesis's score is the sum of its log-probabilities.
    """

    n_best = 1

    max_length: PositiveInt
    max_length_ratio: Annotated[float, Field(gt=0)] | None = None
    min_length: NonNegativeInt = 0
    replace_unknown: bool = False
    int8: bool = False

    def __call__(
        self,
        model: Stepwise,
        source: Tensor,
        source_mask: Tensor,
        with_attention: bool = False,
        forced: Forced = None,
    ) -> list[list[Hypothesis]]:
        found = decode_autoregressively(
            model,
            source,
            source_mask,
            self.limits(source_mask.sum(1)),
            self.min_length,
            choose=choose_likeliest,
            with_attention=with_attention,
            forced=forced,
            int8=self.int8,
        )
        return [[hypothesis] for hypothesis in found]


def choose_likeliest(log_probs: Tensor, alive: Tensor, written: int) -> Tensor:
    """The token of each row with the highest log-probability: (N, V) -> (N,)."""
    _, tokens = topk_by_blocks(log_probs, 1)
    return tokens.squeeze(1)
