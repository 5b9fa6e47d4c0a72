"""Lesson 4, one step of Luong's decoder: dot scores, context, s~, and the output."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
from attnlab.course.pad_mistakes import pad_mistakes
from attnlab.course.reference import (
    dot_scores,
    masked_softmax,
    masks,
    normal,
    softmax,
    weighted_sum,
)

Array = NDArray[Any]


def _draw_scores(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for batch, length, width in ((3, 5, 4), (1, 4, 4), (4, 4, 4), (2, 6, 3)):
        drawn.append((normal(random, batch, width), normal(random, batch, length, width)))
    return drawn


def _luong_step(
    states: Array,
    t: int,
    encoder_states: Array,
    mask: Array,
    W_c: Array,
    b_c: Array,
    W_y: Array,
    b_y: Array,
    *,
    asks: int = 0,
    joined: str = "context first",
    squash: Any = np.tanh,
    reads_attentional: bool = True,
    weigh: Any = masked_softmax,
    normalise: Any = softmax,
) -> Array:
    """The step, and its frequent mistakes."""
    state = states[:, t]
    scores = dot_scores(states[:, t + asks], encoder_states)
    weights = weigh(scores, mask)
    context = weighted_sum(weights, encoder_states)
    parts = [context, state] if joined == "context first" else [state, context]
    attentional = squash(np.concatenate(parts, axis=1) @ W_c.T + b_c)
    logits = (attentional if reads_attentional else state) @ W_y.T + b_y
    probabilities: Array = normalise(logits)
    return probabilities


def _draw_step(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for mask in masks():
        batch, length = mask.shape
        states, encoder_states = normal(random, batch, 5, 4), normal(random, batch, length, 4)
        t = int(random.integers(1, 5))
        matrices = (normal(random, 4, 8), normal(random, 4), normal(random, 6, 4))
        drawn.append((states, t, encoder_states, mask, *matrices, normal(random, 6)))
    return drawn


def _wrong(**change: Any) -> Any:
    return lambda *inputs: _luong_step(*inputs, **change)


def _without_bias(
    states: Array,
    t: int,
    encoder_states: Array,
    mask: Array,
    W_c: Array,
    b_c: Array,
    W_y: Array,
    b_y: Array,
) -> Array:
    return _luong_step(states, t, encoder_states, mask, W_c, np.zeros_like(b_c), W_y, b_y)


def _without_output_bias(*inputs: Any) -> Array:
    without = (*inputs[:-1], np.zeros_like(inputs[-1]))
    return _luong_step(*without)


def _step_before(states: Array, t: int, *others: Array) -> Array:
    return _luong_step(states, t - 1, *others)


DOT_SCORES = FunctionExercise(
    name="dot_scores",
    arguments=("state", "encoder_states"),
    draw=_draw_scores,
    reference=dot_scores,
    returns=("scores",),
    mistakes=(
        Mistake(
            lambda state, keys: dot_scores(state, keys) / np.sqrt(state.shape[1]),
            "모든 스코어가 같은 비율로 작습니다. 이 문제의 스코어는 나누지 않은 내적입니다.",
            "all scores are too small by one factor; plain dot products are asked for here.",
        ),
        Mistake(
            lambda state, keys: softmax(dot_scores(state, keys)),
            "스코어가 아니라, 소프트맥스를 거친 가중치입니다.",
            "these are weights, behind the softmax, not scores.",
        ),
    ),
)

LUONG_STEP = FunctionExercise(
    name="luong_step",
    arguments=("states", "t", "encoder_states", "mask", "W_c", "b_c", "W_y", "b_y"),
    draw=_draw_step,
    reference=_luong_step,
    returns=("probabilities",),
    mistakes=(
        Mistake(
            _wrong(asks=-1),
            "쿼리로 한 시점 전의 상태를 썼습니다. 루옹의 쿼리는 현재 시점의 상태입니다.",
            "the query is the state one step before; Luong's is that of the current step.",
        ),
        Mistake(
            _step_before,
            "은닉 상태 s가 한 시점 전의 것입니다. t는 0부터 셉니다.",
            "it is the step before: t is counted from 0.",
        ),
        Mistake(
            _wrong(joined="state first"),
            "연결한 두 벡터의 순서가 v = [a; s]와 다릅니다.",
            "the two joined vectors stand in another order than in v = [a; s].",
        ),
        Mistake(
            _wrong(squash=lambda x: x),
            "s̃의 성분이 -1과 1 사이에 있지 않습니다.",
            "the components of s̃ are not between -1 and 1.",
        ),
        Mistake(
            _without_bias,
            "s̃를 만들 때 편향 하나가 빠졌습니다.",
            "a bias is missing where s̃ is made.",
        ),
        Mistake(
            _without_output_bias,
            "출력층의 편향이 빠졌습니다.",
            "the bias of the output layer is missing.",
        ),
        Mistake(
            _wrong(reads_attentional=False),
            "출력층이 컨텍스트 벡터를 전혀 보지 못합니다. s를 그대로 읽습니다.",
            "the output layer does not see the context at all: it reads s itself.",
        ),
        *pad_mistakes(lambda weigh: _wrong(weigh=weigh)),
        Mistake(
            _wrong(normalise=lambda logits: softmax(logits, axis=0)),
            "확률을 단어 축이 아니라 배치 축으로 정규화했습니다.",
            "the probabilities sum to one over the batch, not over the words.",
        ),
        Mistake(
            _wrong(normalise=lambda logits: logits),
            "결과를 더해도 1이 되지 않습니다. 확률이 아니라 로짓입니다.",
            "the results do not sum to one: they are logits, not probabilities.",
        ),
    ),
)

FUNCTIONS = (DOT_SCORES, LUONG_STEP)
