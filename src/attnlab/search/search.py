"""What every search is."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from attnlab.batch import BOS, PAD
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.hypothesis import Hypothesis


class Search(ABC):
    """Finds likely targets for a batch of sources. The model must be in evaluation mode."""

    @abstractmethod
    def __call__(
        self, model: Seq2Seq, source: Tensor, source_mask: Tensor, with_attention: bool = False
    ) -> list[list[Hypothesis]]:
        """source (B, S) and its mask -> for each sentence its hypotheses, the best first."""


def next_log_probs(logits: Tensor) -> Tensor:
    """Logits (N, V) of the next token -> log-probabilities, where `<pad>` and `<bos>` can never be written."""
    logits = logits.float()
    logits[:, [PAD, BOS]] = -torch.inf
    return logits.log_softmax(-1)


def length_limits(source_mask: Tensor, max_length: int, max_length_ratio: float | None) -> Tensor:
    """How many tokens, `<eos>` included, may be written for each sentence: (B,) long."""
    limits = torch.full((source_mask.shape[0],), max_length, device=source_mask.device)
    if max_length_ratio is None:
        return limits
    by_source = (source_mask.sum(1) * max_length_ratio).ceil().long()
    return torch.minimum(limits, by_source).clamp(min=1)
