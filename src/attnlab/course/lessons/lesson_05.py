"""Lesson 5, the table of scores: dot, scaled dot, general, concat, location."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
from attnlab.course.properties import weights_properties
from attnlab.course.reference import dot_scores, masked_softmax, masks, normal, softmax

Array = NDArray[Any]


def scaled_dot(query: Array, keys: Array) -> Array:
    scores: Array = dot_scores(query, keys) / np.sqrt(query.shape[1])
    return scores


def general(query: Array, keys: Array, W: Array) -> Array:
    return dot_scores(query @ W, keys)


def concat(query: Array, keys: Array, W_a: Array, W_b: Array) -> Array:
    scores: Array = np.tanh(_joined(query, keys) @ W_b.T) @ W_a
    return scores


def location(query: Array, W_a: Array, mask: Array) -> Array:
    return masked_softmax(query @ W_a.T, mask)


def _joined(query: Array, keys: Array, query_first: bool = True) -> Array:
    """(B, S, H + D), the query beside each key."""
    repeated = np.repeat(query[:, None], keys.shape[1], axis=1)
    parts = [repeated, keys] if query_first else [keys, repeated]
    return np.concatenate(parts, axis=2)


# Batch, source length, and the width of query and keys, which is the length too in one of them.
SIZES = ((3, 5, 4), (1, 6, 3), (4, 4, 4))


def _draw_pairs(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for batch, length, width in SIZES:
        drawn.append((normal(random, batch, width), normal(random, batch, length, width)))
    return drawn


def _draw_general(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = [
        (query, keys, normal(random, query.shape[1], query.shape[1]))
        for query, keys in _draw_pairs(random)
    ]
    other_width = (normal(random, 2, 3), normal(random, 2, 4, 5), normal(random, 3, 5))
    return [*drawn, other_width]


def _draw_concat(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for query, keys in _draw_pairs(random):
        width = query.shape[1]
        drawn.append((query, keys, normal(random, 6), normal(random, 6, 2 * width)))
    return drawn


def _draw_location(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for mask in masks():
        drawn.append((normal(random, len(mask), 4), normal(random, mask.shape[1], 4), mask))
    return drawn


UNSCALED = Mistake(
    dot_scores,
    "모든 스코어가 같은 비율로 큽니다. 벡터의 차원을 고려하지 않았습니다.",
    "all scores are too large by one factor: the width of the vectors has no part in them.",
)

SCALED_DOT = FunctionExercise(
    name="scaled_dot",
    arguments=("query", "keys"),
    draw=_draw_pairs,
    reference=scaled_dot,
    returns=("scores",),
    mistakes=(
        UNSCALED,
        Mistake(
            lambda query, keys: dot_scores(query, keys) / query.shape[1],
            "스코어를 차원 n 자체로 나눈 값입니다.",
            "the scores are divided by the width n itself.",
        ),
        Mistake(
            lambda query, keys: dot_scores(query, keys) * np.sqrt(query.shape[1]),
            "스코어를 나누어야 할 수로 나누지 않고 곱했습니다.",
            "the scores are multiplied by what they should be divided by.",
        ),
        Mistake(
            lambda query, keys: dot_scores(query, keys) / np.sqrt(keys.shape[1]),
            "나누는 수가 벡터의 차원이 아니라 문장의 길이에 따라 달라집니다.",
            "the divisor depends on the length of the sentence, not on the width of the vectors.",
        ),
    ),
)

GENERAL = FunctionExercise(
    name="general",
    arguments=("query", "keys", "W"),
    draw=_draw_general,
    reference=general,
    returns=("scores",),
    mistakes=(
        Mistake(
            lambda query, keys, W: dot_scores(query @ W.T, keys),
            "가중치 행렬을 전치하여 곱했습니다.",
            "the weight matrix is used transposed.",
        ),
        Mistake(
            lambda query, keys, W: dot_scores(query, keys),
            "가중치 행렬 W가 스코어에 영향을 주지 않습니다.",
            "the matrix W has no influence on the scores.",
        ),
    ),
)

CONCAT = FunctionExercise(
    name="concat",
    arguments=("query", "keys", "W_a", "W_b"),
    draw=_draw_concat,
    reference=concat,
    returns=("scores",),
    mistakes=(
        Mistake(
            lambda query, keys, W_a, W_b: _joined(query, keys) @ W_b.T @ W_a,
            "tanh를 거치지 않았습니다.",
            "there is no tanh in these scores.",
        ),
        Mistake(
            lambda query, keys, W_a, W_b: (
                np.tanh(_joined(query, keys, query_first=False) @ W_b.T) @ W_a
            ),
            "[s; h]가 아니라 [h; s]의 순서로 연결했습니다.",
            "the vectors are joined as [h; s], not as [s; h].",
        ),
        Mistake(
            lambda query, keys, W_a, W_b: np.tanh(_joined(query, keys) @ W_b.T).sum(2),
            "W_a가 스코어에 영향을 주지 않습니다.",
            "W_a has no influence on the scores.",
        ),
    ),
)

LOCATION = FunctionExercise(
    name="location",
    arguments=("query", "W_a", "mask"),
    draw=_draw_location,
    reference=location,
    returns=("weights",),
    mistakes=(
        Mistake(
            lambda query, W_a, mask: query @ W_a.T,
            "가중치가 아니라 소프트맥스를 거치기 전의 값입니다.",
            "these are the numbers before the softmax, not weights.",
        ),
        Mistake(
            lambda query, W_a, mask: softmax(np.where(mask, query @ W_a.T, -np.inf), axis=0),
            "가중치의 합이 한 문장의 위치들이 아니라 배치의 문장들에 걸쳐 1입니다.",
            "the weights sum to one over the sentences of the batch, not over the positions.",
        ),
        Mistake(
            lambda query, W_a, mask: softmax(query @ W_a.T) * mask,
            "패딩의 가중치는 0이지만, 나머지 가중치의 합이 1보다 작습니다.",
            "the pads have weight 0, but the others sum to less than one.",
        ),
    ),
    properties=weights_properties(result=0, mask=2),
)

FUNCTIONS = (SCALED_DOT, GENERAL, CONCAT, LOCATION)
