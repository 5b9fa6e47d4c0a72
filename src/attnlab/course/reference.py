"""What the right functions of several lessons have in common, with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def softmax(scores: Array, axis: int = -1) -> Array:
    """exp z_i / sum_j exp z_j; scores of minus infinity get exactly 0."""
    exponentials = np.exp(scores - scores.max(axis, keepdims=True))
    shares: Array = exponentials / exponentials.sum(axis, keepdims=True)
    return shares


def masked_softmax(scores: Array, mask: Array) -> Array:
    """Weights (..., S), which are 0 where the mask is False."""
    return softmax(np.where(mask, scores, -np.inf))


def sigmoid(x: Array) -> Array:
    shares: Array = 1 / (1 + np.exp(-x))
    return shares


def weighted_sum(weights: Array, values: Array) -> Array:
    """Weights (B, S) and values (B, S, E) -> (B, E)."""
    total: Array = np.einsum("bs,bse->be", weights, values)
    return total


def dot_scores(query: Array, keys: Array) -> Array:
    """Query (B, D) and keys (B, S, D) -> (B, S)."""
    scores: Array = np.einsum("bd,bsd->bs", query, keys)
    return scores


def normal(random: np.random.Generator, *shape: int) -> Array:
    """Numbers of the standard normal distribution, float32."""
    return random.standard_normal(shape).astype(np.float32)


def mask_behind(lengths: Sequence[int]) -> Array:
    """True at real tokens; pads stand behind them."""
    mask: Array = np.arange(max(lengths)) < np.asarray(lengths)[:, None]
    return mask


def mask_in_front(lengths: Sequence[int]) -> Array:
    """True at real tokens; pads stand in front of them."""
    return mask_behind(lengths)[:, ::-1].copy()


def masks() -> list[Array]:
    """Of several kinds: pads behind, one sentence, pads in front, no pads at all."""
    return [
        mask_behind([5, 2, 3]),
        mask_behind([4]),
        mask_in_front([3, 6, 1, 4]),
        mask_behind([4, 4]),
    ]
