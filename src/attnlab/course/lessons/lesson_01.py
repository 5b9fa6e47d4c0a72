"""Lesson 1, one context vector: the encoder's last state, and the likeliest next word."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
from attnlab.course.properties import sums_to_one
from attnlab.course.reference import mask_behind, normal, sigmoid, softmax

Array = NDArray[Any]


def context_vector(states: Array, mask: Array) -> Array:
    last = mask.sum(1) - 1
    chosen: Array = states[np.arange(len(states)), last]
    return chosen


def _draw_states(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for lengths in ([3, 5, 2], [4], [1, 6, 6, 2], [3, 3]):
        mask = mask_behind(lengths)
        drawn.append((normal(random, *mask.shape, 4), mask))
    return drawn


def next_word(logits: Array) -> tuple[Array, Array]:
    return softmax(logits), logits.argmax(1)


def _draw_logits(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = [(3 * normal(random, *shape),) for shape in ((3, 7), (1, 5), (5, 5))]
    # Many unsure ones: whoever draws words from the distribution must not pass by luck.
    return [*drawn, (normal(random, 24, 9),)]


CONTEXT_VECTOR = FunctionExercise(
    name="context_vector",
    arguments=("states", "mask"),
    draw=_draw_states,
    reference=context_vector,
    returns=("context",),
    mistakes=(
        Mistake(
            lambda states, mask: states[:, -1],
            "짧은 문장에서 패딩 위치의 은닉 상태를 골랐습니다.",
            "for shorter sentences it takes the state at a pad.",
        ),
        Mistake(
            lambda states, mask: states[:, 0],
            "마지막이 아니라 첫 시점의 은닉 상태를 골랐습니다.",
            "it takes the first state.",
        ),
        Mistake(
            lambda states, mask: states.mean(1),
            "은닉 상태의 평균을 냈고, 패딩까지 평균에 넣었습니다.",
            "it averages the states, those at pads too.",
        ),
        Mistake(
            lambda states, mask: (states * mask[..., None]).sum(1) / mask.sum(1)[:, None],
            "은닉 상태 하나가 아니라 은닉 상태의 평균입니다.",
            "it is the mean of the states, not one of them.",
        ),
        Mistake(
            lambda states, mask: states[np.arange(len(states)), mask.sum(1) - 2],
            "마지막 토큰보다 한 시점 앞의 은닉 상태입니다.",
            "it is the state one step before the last token.",
        ),
    ),
)

NEXT_WORD = FunctionExercise(
    name="next_word",
    arguments=("logits",),
    draw=_draw_logits,
    reference=next_word,
    returns=("probabilities", "words"),
    mistakes=(
        Mistake(
            lambda logits: (softmax(logits, axis=0), logits.argmax(1)),
            "확률을 단어 축이 아니라 배치 축으로 정규화했습니다.",
            "the probabilities sum to one over the batch, not over the words.",
        ),
        Mistake(
            lambda logits: (logits, logits.argmax(1)),
            "확률의 합이 1이 아닙니다. 로짓을 그대로 돌려주었습니다.",
            "the probabilities do not sum to one: they are the logits themselves.",
        ),
        Mistake(
            lambda logits: (sigmoid(logits), logits.argmax(1)),
            "확률의 합이 1이 아닙니다. 단어마다 따로 0과 1 사이로 바꾼 값입니다.",
            "the probabilities do not sum to one: each word was squashed by itself.",
        ),
        Mistake(
            lambda logits: (softmax(logits), logits.argmin(1)),
            "확률이 가장 낮은 단어를 골랐습니다.",
            "the chosen words are the least likely ones.",
        ),
    ),
    properties=(sums_to_one,),
)

FUNCTIONS = (CONTEXT_VECTOR, NEXT_WORD)
