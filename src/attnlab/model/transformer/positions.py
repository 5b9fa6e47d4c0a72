"""How a layer without recurrence knows the order of its tokens.

Axes: B batch, T length, E width, N heads, d width of a head (E / N).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from attnlab.errors import ExperimentError
from attnlab.model.attention.memory import count_positions

PositionKind = Literal["sinusoidal", "learned", "rotary"]

Turn = Callable[[Tensor], Tensor]
"""Makes queries or keys (B, N, T, d) what self-attention compares."""

SLOWEST = 10_000  # the slowest wave has a length of 2π times it


class Positions(nn.Module, ABC):
    """Marks vectors with their positions, which count the real tokens from 0 on."""

    @abstractmethod
    def added(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """The embedded tokens (..., E) with what marks their positions (...)."""

    def turn(self, positions: Tensor, dtype: torch.dtype) -> Turn:
        """What self-attention does to queries and keys (B, N, T, d) at positions (B, T).

        dtype: that of the vectors between the blocks.
        """
        return _as_it_is


def _as_it_is(vectors: Tensor) -> Tensor:
    return vectors


class Sinusoids(Positions):
    """PE(p, 2i) = sin(p / 10000^(2i/E)), PE(p, 2i+1) = cos(p / 10000^(2i/E)).

    Vaswani et al. 2017, section 3.5; the sum reads embeddings and waves alike.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def added(self, embedded: Tensor, positions: Tensor) -> Tensor:
        return embedded + sinusoids(positions, self.size, embedded.dtype)


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
        # Whole sentences that are short enough need no look, for which a GPU would wait. A step of
        # a decoder is one token, wherever it stands.
        steps = positions.shape[-1]
        if steps == 1 or steps > self.longest:
            self._check(int(positions.max()) + 1, is_step=steps == 1)
        return embedded + self.vectors(positions)

    def _check(self, length: int, is_step: bool) -> None:
        """Raise ExperimentError where a sentence has more tokens than there are positions.

        is_step: whether its last token alone was given, as in a search.
        """
        if length <= self.longest:
            return
        if is_step:
            raise ExperimentError(
                f"{self.path} is {self.longest}, but a search goes on to {length} tokens; lower "
                f"search.max_length to {self.longest}, or raise the other and train anew"
            )
        raise ExperimentError(
            f"{self.path} is {self.longest}, but a sentence of {length} tokens was met; raise it "
            "and train anew, or give shorter sentences"
        )


class RotaryPositions(Positions):
    """Queries and keys are turned by their positions, so that products know distances alone.

    The pair (x_i, x_{i+d/2}) is turned by the angle p / 10000^(2i/d) (Su et al. 2021, equation 34,
    there with neighbours as pairs).
    """

    def __init__(self, head_size: int) -> None:
        super().__init__()
        self.head_size = head_size

    def added(self, embedded: Tensor, positions: Tensor) -> Tensor:
        return embedded

    def turn(self, positions: Tensor, dtype: torch.dtype) -> Turn:
        angles = angles_of(positions, self.head_size, dtype).unsqueeze(1)  # (B, 1, T, d / 2)

        def turned(vectors: Tensor) -> Tensor:
            cos = angles.cos().to(vectors.dtype)
            sin = angles.sin().to(vectors.dtype)
            first, second = vectors.chunk(2, dim=-1)
            return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

        return turned


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
        return RotaryPositions(size // heads)
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


def positions_read(real: Tensor) -> Tensor:
    """Positions of the tokens that are read, (B, S) bool -> (B, S); 0 at all others.

    Another pad may stand beyond the longest sentence, where no position is learned.
    """
    return count_positions(real).masked_fill(~real, 0)


def sinusoids(positions: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Sines and cosines of positions (...): (..., E), the sine of each wave before its cosine."""
    angles = angles_of(positions, size, dtype)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).to(dtype)


def angles_of(positions: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """p / 10000^(2i/size) for positions p (...) and i < size / 2: (..., size / 2).

    dtype: theirs, or float32 where it is a narrower one, which has too few digits for an angle.
    """
    exact = torch.promote_types(dtype, torch.float32)
    i = torch.arange(0, size, 2, device=positions.device, dtype=exact)
    frequencies = torch.exp(i * (-math.log(SLOWEST) / size))
    return positions.unsqueeze(-1) * frequencies
