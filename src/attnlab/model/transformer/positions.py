"""How a layer without recurrence knows the order of its tokens.

Axes: B batch, T length, E width, N heads, d width of a head (E / N).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from attnlab.errors import ExperimentError

PositionKind = Literal["sinusoidal", "learned", "rotary"]

SLOWEST = 10_000  # the slowest wave has a length of 2π times it


class Positions(nn.Module, ABC):
    """Marks vectors with their positions, which count the real tokens from 0 on."""

    @abstractmethod
    def added(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """The embedded tokens (..., E) with what marks their positions (...)."""

    def turned(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Queries or keys (B, N, T, d) as self-attention compares them, at positions (B, T)."""
        return vectors


class Sinusoids(Positions):
    """PE(p, 2i) = sin(p / 10000^(2i/E)), PE(p, 2i+1) = cos(p / 10000^(2i/E)).

    Vaswani et al. 2017, section 3.5; the sum reads embeddings and waves alike.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def added(self, embedded: Tensor, positions: Tensor) -> Tensor:
        return embedded + sinusoids(positions, self.size).to(embedded.dtype)


class LearnedPositions(Positions):
    """A vector for each position, learned as the tokens' are (Gehring et al. 2017, section 3.1).

    Args:
        path: of the setting `longest` in a config.
        longest: the number of positions.
    """

    def __init__(self, size: int, longest: int, path: str) -> None:
        super().__init__()
        self.path = path
        self.longest = longest
        self.vectors = nn.Embedding(longest, size)

    def added(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """As `Positions.added`; raises ExperimentError where a position has no vector."""
        length = int(positions.max()) + 1
        if length > self.longest:
            raise ExperimentError(
                f"{self.path} is {self.longest}, but a sentence of {length} tokens was met; raise "
                "it and train anew, give shorter sentences, or train with positions=sinusoidal"
            )
        return embedded + self.vectors(positions)


class RotaryPositions(Positions):
    """Queries and keys are turned by their positions, so that products know distances alone.

    The pair (x_i, x_{i+d/2}) is turned by the angle p / 10000^(2i/d) (Su et al. 2021, equation 34,
    there with neighbours as pairs).
    """

    def added(self, embedded: Tensor, positions: Tensor) -> Tensor:
        return embedded

    def turned(self, vectors: Tensor, positions: Tensor) -> Tensor:
        angles = angles_of(positions, vectors.shape[-1]).unsqueeze(1)  # (B, 1, T, d / 2)
        cos, sin = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)
        first, second = vectors.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def positions_of(
    kind: PositionKind, size: int, heads: int, longest: int | None, path: str
) -> Positions:
    """The positions of a Transformer.

    Raises ValueError where the settings do not go together.

    Args:
        size: width E.
        heads: N, which share the width.
        longest: the number of learned positions; None for the others.
        path: of `longest` in a config.
    """
    if longest is not None and kind != "learned":
        raise ValueError(
            f"longest limits learned positions, but positions={kind} have no limit; leave it null"
        )
    if kind == "learned":
        if longest is None:
            raise ValueError(
                "positions=learned needs longest, the most tokens of a sentence, such as 256"
            )
        return LearnedPositions(size, longest, path)
    if kind == "rotary":
        _check_pairs(size, heads)
        return RotaryPositions()
    if size % 2:
        raise ValueError(
            "positions=sinusoidal has a sine and a cosine of each wave, so that embedding_size "
            f"must be even, got {size}"
        )
    return Sinusoids(size)


def _check_pairs(size: int, heads: int) -> None:
    """Raise ValueError where rotary positions cannot pair the numbers of each head."""
    if size // heads % 2:
        raise ValueError(
            f"positions=rotary turns pairs of numbers, but each of {heads} heads has "
            f"{size // heads}; make embedding_size / self_attention_heads even, or choose "
            "positions=sinusoidal"
        )


def sinusoids(positions: Tensor, size: int) -> Tensor:
    """Sines and cosines of positions (...): (..., E), the sine of each wave before its cosine."""
    angles = angles_of(positions, size)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def angles_of(positions: Tensor, size: int) -> Tensor:
    """p / 10000^(2i/size) for positions p (...) and i < size / 2: (..., size / 2)."""
    i = torch.arange(0, size, 2, device=positions.device)
    frequencies = torch.exp(i * (-math.log(SLOWEST) / size))
    return positions.unsqueeze(-1) * frequencies
