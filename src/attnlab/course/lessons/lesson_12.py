"""Lesson 12, attention in a classifier: Keras' Bahdanau layer, and the layers behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
from attnlab.course.properties import weights_properties
from attnlab.course.reference import (
    masked_softmax,
    masks,
    normal,
    sigmoid,
    softmax,
    weighted_sum,
)

Array = NDArray[Any]


def _keras_attention(
    values: Array,
    query: Array,
    mask: Array,
    W1: Array,
    b1: Array,
    W2: Array,
    b2: Array,
    V: Array,
    b_v: Array,
    *,
    weigh: Any = masked_softmax,
    squash: Any = np.tanh,
    biases: bool = True,
    swapped: bool = False,
) -> tuple[Array, Array]:
    """The layer, and its frequent mistakes; matrices are (inputs, units), as in Keras."""
    if swapped:
        W1, W2 = W2, W1
    inner = values @ W1 + (query @ W2)[:, None]
    if biases:
        inner = inner + b1 + b2
    scores = squash(inner) @ V + b_v
    weights = weigh(scores, mask)
    return weighted_sum(weights, values), weights


def probability(
    context: Array, W3: Array, b3: Array, w4: Array, b4: Array, squash: Any = sigmoid
) -> Array:
    hidden = np.maximum(context @ W3 + b3, 0)
    found: Array = squash(hidden @ w4 + b4)
    return found


def _draw_attention(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for mask in masks():
        batch, length = mask.shape
        values, query = normal(random, batch, length, 4), normal(random, batch, 4)
        first = normal(random, 4, 5), normal(random, 5)
        second = normal(random, 4, 5), normal(random, 5)
        drawn.append((values, query, mask, *first, *second, normal(random, 5), normal(random, 1)))
    return drawn


def _draw_context(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for batch in (3, 1, 5):
        dense = normal(random, 4, 20), normal(random, 20)
        drawn.append(
            (normal(random, batch, 4), *dense, 0.3 * normal(random, 20), normal(random, 1))
        )
    return drawn


def _wrong(**change: Any) -> Any:
    return lambda *inputs: _keras_attention(*inputs, **change)


KERAS_ATTENTION = FunctionExercise(
    name="keras_attention",
    arguments=("values", "query", "mask", "W1", "b1", "W2", "b2", "V", "b_v"),
    draw=_draw_attention,
    reference=_keras_attention,
    without_influence=("b_v",),  # the softmax does not see what is added to all scores
    returns=("context", "weights"),
    mistakes=(
        Mistake(
            _wrong(weigh=lambda scores, mask: softmax(np.where(mask, scores, -np.inf), axis=0)),
            "소프트맥스를 시간 축이 아니라 배치 축을 따라 계산했습니다.",
            "the softmax runs over the batch, not over time.",
        ),
        Mistake(
            _wrong(squash=lambda x: x),
            "tanh를 거치지 않았습니다.",
            "there is no tanh in the scores.",
        ),
        Mistake(
            _wrong(biases=False),
            "두 Dense 층의 편향이 빠졌습니다.",
            "the biases of both Dense layers are missing.",
        ),
        Mistake(
            _wrong(swapped=True),
            "W1과 W2가 서로 바뀌었습니다. W1은 값에, W2는 쿼리에 곱합니다.",
            "W1 and W2 have changed places: W1 is on the values, W2 on the query.",
        ),
    ),
    properties=weights_properties(result=1, mask=2),
)

PROBABILITY = FunctionExercise(
    name="probability",
    arguments=("context", "W3", "b3", "w4", "b4"),
    draw=_draw_context,
    reference=probability,
    returns=("probability",),
    mistakes=(
        Mistake(
            lambda context, W3, b3, w4, b4: sigmoid((context @ W3 + b3) @ w4 + b4),
            "Dense(20) 층의 ReLU가 빠졌습니다.",
            "the relu of the Dense layer of 20 is missing.",
        ),
        Mistake(
            lambda context, W3, b3, w4, b4: probability(
                context, W3, b3, w4, b4, squash=lambda x: x
            ),
            "결과가 0과 1 사이에 있지 않습니다. 시그모이드를 거치기 전의 값입니다.",
            "the result is not between 0 and 1: it is taken before the sigmoid.",
        ),
    ),
)

FUNCTIONS = (KERAS_ATTENTION, PROBABILITY)
