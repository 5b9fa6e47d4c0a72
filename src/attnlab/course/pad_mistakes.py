"""Frequent mistakes with pads, of lessons whose functions return no weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from attnlab.course.function_exercise import Mistake
from attnlab.course.reference import softmax

Array = NDArray[Any]
Weigh = Callable[[Array, Array], Array]
"""Scores (B, S) and a mask (B, S) to weights (B, S)."""


def pad_mistakes(weighing: Callable[[Weigh], Callable[..., Any]]) -> tuple[Mistake, Mistake]:
    """No mask at all, and one that is applied after the softmax.

    weighing: returns the lesson's function with another way to weigh in it.
    """
    return (
        Mistake(
            weighing(_without_mask),
            "패딩이 가중치를 받습니다.",
            "pads get weight.",
        ),
        Mistake(
            weighing(_masked_afterwards),
            "패딩의 가중치는 0이지만, 나머지 가중치의 합이 1보다 작습니다.",
            "the pads have weight 0, but the other weights sum to less than one.",
        ),
    )


def _without_mask(scores: Array, mask: Array) -> Array:
    return softmax(scores)


def _masked_afterwards(scores: Array, mask: Array) -> Array:
    weights: Array = softmax(scores) * mask
    return weights
