"""Lesson 2, the bottleneck: the states of an encoder in two directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
from attnlab.course.reference import normal

Array = NDArray[Any]


def both_directions(forward: Array, backward: Array) -> Array:
    joined: Array = np.concatenate([forward, backward[:, ::-1]], axis=2)
    return joined


def _draw(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for shape in ((3, 5, 4), (1, 4, 3), (4, 1, 4)):
        drawn.append((normal(random, *shape), normal(random, *shape)))
    return drawn


BOTH_DIRECTIONS = FunctionExercise(
    name="both_directions",
    arguments=("forward", "backward"),
    draw=_draw,
    reference=both_directions,
    returns=("states",),
    mistakes=(
        Mistake(
            lambda forward, backward: np.concatenate([forward, backward], axis=2),
            "첫 단어의 자리에, 두 방향에서 서로 다른 단어를 읽은 상태가 나란히 있습니다.",
            "at the first word stand two states that were made at different words.",
        ),
        Mistake(
            lambda forward, backward: np.concatenate([backward[:, ::-1], forward], axis=2),
            "두 방향이 뒤바뀌어 역방향 상태가 앞에 있습니다.",
            "the backward state stands in front of the forward one.",
        ),
    ),
)

FUNCTIONS = (BOTH_DIRECTIONS,)
