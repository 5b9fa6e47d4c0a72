"""Models that searches are tried on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from by_hand import OPINIONS
from torch import nn

from attnlab.batch import EOS
from attnlab.data.padding import make_batch


@pytest.fixture
def searchable(tiny_model, pairs):
    """A model with opinions, and a padded batch of sources."""

    def make(seed: int = 18, **choices):
        scale, for_eos = OPINIONS[seed]
        choices = {"cell": "lstm", "layers": 2, "scale": scale} | choices
        model = tiny_model(seed=seed, **choices)
        with torch.no_grad():
            model.output.bias[EOS] += for_eos
        batch = make_batch(
            *pairs(source_lengths=(5, 2, 7, 1, 4), target_lengths=(1,) * 5, seed=seed),
            model.padding,
        )
        return model, batch.source, batch.source_mask

    return make


@dataclass(frozen=True)
class Rows:
    """What a `Bigram` knows of its sentences."""

    mask: torch.Tensor  # (B, S)

    def select(self, rows: torch.Tensor) -> Rows:
        return Rows(self.mask[rows])


class Bigram(nn.Module):
    """A model that looks up the next token's logits by the last token, in a (V, V) table.

    It attends at random places, if at all.
    """

    def __init__(self, logits: np.ndarray, attends: bool = True) -> None:
        super().__init__()
        self.logits = torch.as_tensor(logits, dtype=torch.float32)
        self.attends = attends

    def encode(self, source: torch.Tensor, source_mask: torch.Tensor) -> tuple[Rows, Rows]:
        return Rows(source_mask), Rows(source_mask)

    def step(self, tokens: torch.Tensor, state: Rows, memory: Rows):
        weights = None
        if self.attends:
            # Counted from the first real token, so that padding moves nothing.
            mask = memory.mask.repeat_interleave(len(tokens) // len(memory.mask), 0)
            places = (mask.cumsum(1) - 1).clamp(min=0)
            scores = 3 * torch.sin(1.7 * places + tokens.unsqueeze(1))
            weights = scores.masked_fill(~mask, -torch.inf).softmax(1)
        return self.logits[tokens], state, weights


@pytest.fixture(scope="session")
def bigram():
    """Builds a `Bigram` of random logits; `scale` says how much it cares."""

    def make(seed: int, vocabulary: int = 6, scale: float = 2.0, attends: bool = True) -> Bigram:
        return Bigram(
            np.random.default_rng(seed).normal(0, scale, (vocabulary, vocabulary)), attends
        )

    return make
