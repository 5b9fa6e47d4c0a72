"""Every score with sizes that are all different, and what goes into it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.config.part import Part
from attnlab.model.attention.attention import Attention, MultiHeadAttention
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.concat import ConcatScore
from attnlab.model.attention.cosine import CosineScore
from attnlab.model.attention.dot import DotScore
from attnlab.model.attention.general import GeneralScore
from attnlab.model.attention.location import LocationScore
from attnlab.model.attention.memory import Memory, count_positions
from attnlab.model.attention.normed_bahdanau import NormedBahdanauScore
from attnlab.model.attention.scaled_dot import ScaledDotScore
from attnlab.model.attention.scaled_luong import ScaledLuongScore
from attnlab.model.attention.score import Score

B, T, S, H, D = 2, 3, 5, 4, 6  # all different: a swapped axis shows
EQUAL_WIDTHS = ("dot", "scaled_dot", "cosine")
PARTS: dict[str, Part[Score]] = {
    "dot": Part(DotScore),
    "scaled_dot": Part(ScaledDotScore),
    "general": Part(GeneralScore),
    "scaled_luong": Part(ScaledLuongScore),
    "concat": Part(ConcatScore, size=7),
    "bahdanau": Part(BahdanauScore, size=7),
    "normed_bahdanau": Part(NormedBahdanauScore, size=7),
    "cosine": Part(CosineScore, initial_scale=3.0),
    "location": Part(LocationScore, max_length=8),
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


def memory_of(attention: Attention | MultiHeadAttention, outputs: Tensor, masked: bool = True) -> Memory:
    keys, values = attention.project(outputs, POSITIONS)
    return Memory(outputs[:, 0], keys, values, MASK if masked else None, POSITIONS, MASK.sum(1))
