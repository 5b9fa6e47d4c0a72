"""Every score with sizes that are all different, and what goes into it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from composed_variants import part_of
from legal_choices import EQUAL_WIDTHS, MAKES_WEIGHTS, SCORES
from torch import Tensor

from attnlab.config.part import Part
from attnlab.model.attention.attention import Attention, MultiHeadAttention
from attnlab.model.attention.memory import Memory, count_positions
from attnlab.model.attention.score import Score

B, T, S, H, D = 2, 3, 5, 4, 6  # all different: a swapped axis shows
PARTS: dict[str, Part[Score]] = {
    name: part_of("attention", name, {"size": 7, "max_length": 8}) for name in SCORES
}
# Scores that go without a normaliser.
WEIGHING: dict[str, Part[Score]] = {
    name: part_of("attention", name, {"size": 7}) for name in MAKES_WEIGHTS
}
MASK = torch.tensor([[True] * 5, [False, False, True, True, True]])
POSITIONS = count_positions(MASK)


@dataclass
class Inputs:
    query: Tensor  # (B, T, H)
    outputs: Tensor  # (B, S, D)


def inputs(name: str, seed: int = 1) -> Inputs:
    random = torch.Generator().manual_seed(seed)
    width = D if name in EQUAL_WIDTHS else H
    query = torch.randn(B, T, width, generator=random, dtype=torch.float64)
    return Inputs(query, torch.randn(B, S, D, generator=random, dtype=torch.float64))


def memory_of(
    attention: Attention | MultiHeadAttention, outputs: Tensor, masked: bool = True
) -> Memory:
    mask = MASK if masked else None
    keys, values = attention.project(outputs, POSITIONS, mask)
    return Memory(outputs[:, 0], keys, values, mask, POSITIONS, MASK.sum(1))
