"""What a beam search extends step by step: partial hypotheses, and their continuations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attnlab.batch import EOS
from attnlab.search.search import topk_by_blocks


@dataclass(frozen=True)
class Continuations:
    """Continuations of the partial hypotheses of N sentences, the likeliest first; each (N, C).

    Attributes:
        scores: the log-probability of the hypothesis with its new token; -inf for none.
        parents: which of its sentence's hypotheses is continued.
        tokens: the new token.
    """

    scores: Tensor
    parents: Tensor
    tokens: Tensor

    def have_ended(self) -> Tensor:
        """(N, C) booleans: whether the hypothesis ends with its new token."""
        return (self.tokens == EOS) & self.scores.isfinite()

    def that_go_on(self, count: int) -> Continuations:
        """The likeliest of those that do not end, `count` of them or as many as there are."""
        others = self.scores.masked_fill(self.tokens == EOS, -torch.inf)
        scores, order = others.topk(min(count, others.shape[1]), dim=1)
        return Continuations(scores, self.parents.gather(1, order), self.tokens.gather(1, order))


def best_continuations(scores: Tensor, log_probs: Tensor, count: int) -> Continuations:
    """The `count` likeliest continuations of each sentence, or as many as there are.

    Args:
        scores: (N, K) log-probabilities of the partial hypotheses.
        log_probs: (N * K, V) of the next token after each of them; they are overwritten.
    """
    vocabulary_size = log_probs.shape[-1]
    continued = log_probs.view(*scores.shape, vocabulary_size).add_(scores.unsqueeze(2))
    candidates = continued.flatten(1)  # (N, K * V)
    best, places = topk_by_blocks(candidates, min(count, candidates.shape[1]))
    return Continuations(best, places // vocabulary_size, places % vocabulary_size)


@dataclass(frozen=True)
class PartialHypotheses:
    """Those of the N sentences that are still being decoded.

    Before the first step a sentence has one empty hypothesis, from then on K of them (or as many as
    exist). They stand side by side and share their sentence's memory.

    Attributes:
        sentences: (N,) their numbers in the batch.
        missing: (N,) how many finished hypotheses a sentence lacks yet.
        scores: (N, K) log-probabilities, best first; -inf where there is no hypothesis.
        tokens: (N, K, t).
        weights: (N, K, t, S) of the attention; None where they are not kept.
    """

    sentences: Tensor
    missing: Tensor
    scores: Tensor
    tokens: Tensor
    weights: Tensor | None = None

    @classmethod
    def empty(cls, num_sentences: int, beam: int, device: torch.device) -> PartialHypotheses:
        """One for each sentence."""
        return cls(
            sentences=torch.arange(num_sentences, device=device),
            missing=torch.full((num_sentences,), beam, device=device),
            scores=torch.zeros(num_sentences, 1, device=device),
            tokens=torch.empty(num_sentences, 1, 0, dtype=torch.long, device=device),
        )

    def weights_of(self, row: int, rank: int) -> Tensor | None:
        """(t, S) of one hypothesis."""
        return None if self.weights is None else self.weights[row, rank].clone()

    def with_weights(self, of_step: Tensor) -> PartialHypotheses:
        """With the weights of one more step, (N * K, S)."""
        of_step = of_step.float().view(*self.scores.shape, 1, -1)
        if self.weights is None:
            return replace(self, weights=of_step)
        return replace(self, weights=torch.cat([self.weights, of_step], dim=2))

    def extended(self, by: Continuations, missing: Tensor) -> PartialHypotheses:
        """These continuations in place of what they continue."""
        rows = torch.arange(len(self.sentences), device=self.sentences.device).unsqueeze(1)
        before = self.tokens[rows, by.parents]
        return PartialHypotheses(
            self.sentences,
            missing,
            by.scores,
            torch.cat([before, by.tokens.unsqueeze(2)], dim=2),
            None if self.weights is None else self.weights[rows, by.parents],
        )

    def are_present(self) -> Tensor:
        """(N, K) booleans: whether there is a hypothesis."""
        return self.scores.isfinite()

    def fill_gaps(self) -> Tensor:
        """(N, K) booleans: the best ones, as many as finished hypotheses are missing."""
        ranks = torch.arange(self.scores.shape[1], device=self.scores.device)
        return (ranks < self.missing.unsqueeze(1)) & self.are_present()

    def select(self, rows: Tensor) -> PartialHypotheses:
        """Those of some sentences."""
        return PartialHypotheses(
            self.sentences[rows],
            self.missing[rows],
            self.scores[rows],
            self.tokens[rows],
            None if self.weights is None else self.weights[rows],
        )
