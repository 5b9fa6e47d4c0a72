"""Several models that write one sentence together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.search import next_log_probs


@dataclass(frozen=True)
class OfEach:
    """The memories, or the states, of all members."""

    parts: tuple[Any, ...]

    def select(self, rows: Tensor) -> OfEach:
        return OfEach(tuple(part.select(rows) for part in self.parts))


class Ensemble(nn.Module):
    """The mean of the members' probabilities of each next token, and of their attention weights.

    Members without attention have no say in where the others look. All must have the same vocabularies.

    Axes: M members.
    """

    def __init__(self, members: Sequence[Seq2Seq]) -> None:
        super().__init__()
        if not members:
            raise ValueError("members must be at least one model")
        self.members: Sequence[Seq2Seq] = nn.ModuleList(members)  # type: ignore[assignment]

    def encode(self, source: Tensor, source_mask: Tensor) -> tuple[OfEach, OfEach]:
        memories, states = zip(*(member.encode(source, source_mask) for member in self.members), strict=True)
        return OfEach(memories), OfEach(states)

    def step(self, tokens: Tensor, state: OfEach, memory: OfEach) -> tuple[Tensor, OfEach, Tensor | None]:
        """As a model's step; the log of the mean probability stands for the logits."""
        steps = [
            member.step(tokens, its_state, its_memory)
            for member, its_state, its_memory in zip(self.members, state.parts, memory.parts, strict=True)
        ]
        sizes = [logits.shape[-1] for logits, _, _ in steps]
        if len(set(sizes)) > 1:
            raise ValueError(f"members must have the same target vocabulary, got vocabularies of {sizes} tokens")
        log_probs = torch.stack([next_log_probs(logits) for logits, _, _ in steps])  # (M, B, V)
        return (
            log_probs.logsumexp(0) - math.log(len(steps)),
            OfEach(tuple(its_state for _, its_state, _ in steps)),
            mean_attention([weights for _, _, weights in steps]),
        )


def mean_attention(weights: Sequence[Tensor | None]) -> Tensor | None:
    """The mean over the members that attend; None where none does."""
    attending = [each for each in weights if each is not None]
    return torch.stack(attending).mean(0) if attending else None
