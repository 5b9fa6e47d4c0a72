"""Dropout of single numbers and of whole words."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

Rate = Annotated[float, Field(ge=0, lt=1)]


KINDS = 2**16  # of numbers of 16 bits, by which a CPU draws what it drops


class Dropout(nn.Dropout):
    """torch's dropout, on a CPU by whole numbers of 16 bits.

    torch draws its Bernoulli numbers there at many times the cost. The rate is rounded to the
    nearest of the 65,536 that such numbers can have, and what is kept is scaled by that one.
    """

    def forward(self, input: Tensor) -> Tensor:
        dropped_kinds = round(self.p * KINDS)
        draws_here = input.device.type == "cpu" and self.training
        if not draws_here or dropped_kinds in (0, KINDS):
            return super().forward(input)
        lowest = -(KINDS // 2)
        kept = _drawn(input.shape) >= lowest + dropped_kinds
        return input * kept.to(input.dtype).mul_(KINDS / (KINDS - dropped_kinds))


def _drawn(shape: torch.Size) -> Tensor:
    """Numbers of 16 bits, all equally likely, four of each number that torch draws."""
    count = shape.numel()
    fours = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
    return fours.view(torch.int16)[:count].view(shape)


def dropout_of_words(word_dropout: float, dropout: float) -> nn.Module:
    """For embeddings (..., S, E): whole words go, and then single numbers of the others."""
    return nn.Sequential(nn.Dropout1d(word_dropout), Dropout(dropout))
