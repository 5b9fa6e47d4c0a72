"""Search: the base class of all searches, and what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from attnlab.batch import BOS, EOS, PAD
from attnlab.errors import ExperimentError


@dataclass(frozen=True)
class Hypothesis:
    """A target that a search found for one sentence.

    tokens never hold `<eos>`; `finished` says whether it came, or the length limit cut the sentence
    off. attention_weights has a row for each token, and one for `<eos>` where it came; None where
    it was not asked for.
    """

    tokens: list[int]
    score: float
    finished: bool
    attention_weights: Tensor | None = None  # (T, S), pads of the batch included


Forced = Mapping[int, int] | None
"""{step, from 0 on: the token that every hypothesis has there}."""
BLOCK = 64  # columns of which `topk_by_blocks` takes the maximum first


class Stepwise(Protocol):
    """A model that encodes a source once and decodes a target step by step.

    `Seq2Seq` and `Ensemble` are such models. Memory and state are the model's own; both have
    `select(rows)`, which gives the rows named, in their order. A step may have K rows of tokens and
    state for each row of the memory, those of one sentence side by side.
    """

    def encode(self, source: Tensor, source_mask: Tensor) -> tuple[Any, Any]:
        """source (B, S) and its mask -> the memory of it, and the first state."""

    def step(self, tokens: Tensor, state: Any, memory: Any) -> tuple[Tensor, Any, Tensor | None]:
        """The last tokens (B,) -> logits (B, V), the next state, attention weights (B, S) or None.

        The logits are those of the next token. They belong to the search, which overwrites them.
        """


class Search(ABC):
    """Finds likely targets for a batch of sources. The model must be in evaluation mode.

    max_length: tokens to write at most, `<eos>` included.
    max_length_ratio: tokens to write at most for each source token; None for no such limit.
    min_length: tokens to write before `<eos>` may come.
    n_best: how many hypotheses of a sentence come back at most.
    int8: whether linear layers multiply 8-bit integers: less time on a CPU, nearly the same
        hypotheses.
    replace_unknown: whether text has the source word that it attended to most in place of each
        `<unk>`.
    """

    max_length: int
    max_length_ratio: float | None
    min_length: int
    n_best: int
    replace_unknown: bool
    int8: bool

    def __post_init__(self) -> None:
        if self.min_length >= self.max_length:
            raise ValueError(
                "min_length must be less than max_length, which counts <eos> and is "
                f"{self.max_length}, got {self.min_length}"
            )

    def limits(self, source_lengths: Tensor) -> Tensor:
        """The most tokens that may be written for sources of these lengths: (B,) long -> (B,) long.

        `<eos>` is counted in both. The ratio leaves room for the minimum length.
        """
        limits = torch.full_like(source_lengths, self.max_length)
        if self.max_length_ratio is None:
            return limits
        by_source = (source_lengths * self.max_length_ratio).ceil().long()
        return torch.minimum(limits, by_source).clamp(min=self.min_length + 1)

    @abstractmethod
    def __call__(
        self,
        model: Stepwise,
        source: Tensor,
        source_mask: Tensor,
        with_attention: bool = False,
        forced: Forced = None,
    ) -> list[list[Hypothesis]]:
        """source (B, S) and its mask -> for each sentence its hypotheses, best first.

        A sentence has no two equal hypotheses.

        forced: step, from 0 on -> the token that every hypothesis has there. Its score is the
            model's own.
        """

    @property
    def needs_attention(self) -> str | None:
        """The setting that requires attention, or None if every model will do."""
        if self.replace_unknown:
            return "replace_unknown"
        return None


def attention_required(setting: str) -> ExperimentError:
    """The error of a search whose setting needs attention weights, on a model that has none."""
    return ExperimentError(
        f"{setting} goes by the attention weights, but the model has no attention; leave it out (0 "
        "or false), or choose a model/attention and a model/decoder that attends"
    )


def next_log_probs(logits: Tensor, may_end: bool = True, forced: int | None = None) -> Tensor:
    """Logits (N, V) of the next token -> log-probabilities, without `<pad>` and `<bos>`.

    These two can never be written. Where the sentence may not end yet, `<eos>` is ruled out too,
    and the others keep the probability that the model gives them: a minimum length chooses among
    sentences and changes no sentence's score. Nor does a forced token, which rules out all others.
    The logits are overwritten.
    """
    logits = logits.float()
    logits[:, [PAD, BOS]] = -torch.inf
    log_probs = logits.log_softmax(-1)
    if forced is not None:
        of_forced = log_probs[:, forced].clone()
        log_probs.fill_(-torch.inf)
        log_probs[:, forced] = of_forced
        return log_probs
    if not may_end:
        log_probs[:, EOS] = -torch.inf
    return log_probs


def topk_by_blocks(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The greatest scores of each row and their indices, like `scores.topk(count, dim=1)`.

    Scores are (N, M), both results (N, count). It takes less time where M is in the thousands: the
    greatest numbers stand in the blocks that have the greatest maxima.
    """
    blocks = scores.shape[1] // BLOCK
    if blocks <= count:
        return scores.topk(count, dim=1)
    end = blocks * BLOCK  # of the last whole block

    # 1. The blocks with the greatest maxima.
    in_blocks = scores[:, :end].unflatten(1, (blocks, BLOCK))  # (N, blocks, BLOCK)
    best = in_blocks.amax(2).topk(count, dim=1).indices  # (N, count)

    # 2. All columns in them, and those after the last whole block.
    columns = torch.arange(scores.shape[1], device=scores.device)
    inside = best.unsqueeze(2) * BLOCK + columns[:BLOCK]  # (N, count, BLOCK)
    after = columns[end:].expand(len(scores), -1)
    kept = torch.cat([inside.flatten(1), after], dim=1)

    # 3. The greatest of these.
    values, order = scores.gather(1, kept).topk(count, dim=1)
    return values, kept.gather(1, order)
