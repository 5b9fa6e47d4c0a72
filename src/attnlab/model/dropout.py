"""Dropout of single numbers and of whole words."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

Rate = Annotated[float, Field(ge=0, lt=1)]


class Dropout(nn.Dropout):
    """torch's dropout, on a CPU by uniform numbers.

    torch draws its Bernoulli numbers there at three times the cost.
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.device.type != "cpu" or not self.training or self.p in (0, 1):
            return super().forward(input)
        kept = torch.rand(input.shape) >= self.p
        return input * kept.to(input.dtype).mul_(1 / (1 - self.p))


def dropout_of_words(word_dropout: float, dropout: float) -> nn.Module:
    """For embeddings (..., S, E): whole words go, and then single numbers of the others."""
    return nn.Sequential(nn.Dropout1d(word_dropout), Dropout(dropout))
