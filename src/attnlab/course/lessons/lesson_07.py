"""Lesson 7, F alpha: the context as a product of a matrix and a vector, and scores that learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
from attnlab.course.reference import normal, softmax

Array = NDArray[Any]


def context(F: Array, alpha: Array) -> Array:
    product: Array = F @ alpha
    return product


def bilinear_scores(F: Array, V: Array, s: Array) -> Array:
    scores: Array = F.T @ V @ s
    return scores


def mlp_scores(F: Array, s: Array, v: Array, W: Array, V: Array) -> Array:
    scores: Array = v @ np.tanh(W @ F + (V @ s)[:, None])
    return scores


# The rows of F, its columns (source words), and the width of s; all alike in the second.
SIZES = ((4, 5, 3), (4, 4, 4), (3, 1, 2))


def _draw_context(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for rows, columns, _ in SIZES:
        alpha = softmax(2 * normal(random, columns))
        drawn.append((normal(random, rows, columns), alpha))
    return drawn


def _draw_bilinear(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for rows, columns, width in SIZES:
        F, V = normal(random, rows, columns), normal(random, rows, width)
        drawn.append((F, V, normal(random, width)))
    return drawn


def _draw_mlp(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for (rows, columns, width), inner in zip(SIZES, (5, 4, 6), strict=True):
        F, s = normal(random, rows, columns), normal(random, width)
        matrices = normal(random, inner, rows), normal(random, inner, width)
        drawn.append((F, s, normal(random, inner), *matrices))
    return drawn


CONTEXT = FunctionExercise(
    name="context",
    arguments=("F", "alpha"),
    draw=_draw_context,
    reference=context,
    returns=("c",),
    mistakes=(
        Mistake(
            lambda F, alpha: F.mean(1),
            "가중치가 결과에 영향을 주지 않습니다. 열들의 단순 평균입니다.",
            "the weights have no influence: this is the plain mean of the columns.",
        ),
        Mistake(
            lambda F, alpha: F[:, alpha.argmax()],
            "가중치가 가장 큰 열 하나만 골랐습니다.",
            "it takes the one column with the largest weight.",
        ),
        Mistake(
            lambda F, alpha: (F @ alpha) / len(alpha),
            "가중합을 다시 단어 수로 나누었습니다.",
            "the weighted sum is divided by the number of words once more.",
        ),
        Mistake(
            lambda F, alpha: F.T @ alpha,
            "F의 열이 아니라 행을 더했습니다.",
            "it adds the rows of F, not its columns.",
        ),
        Mistake(
            lambda F, alpha: F @ softmax(alpha),
            "이미 확률인 α를 소프트맥스에 한 번 더 넣었습니다.",
            "α goes through a softmax once more, though it is a distribution already.",
        ),
    ),
)

BILINEAR_SCORES = FunctionExercise(
    name="bilinear_scores",
    arguments=("F", "V", "s"),
    draw=_draw_bilinear,
    reference=bilinear_scores,
    returns=("scores",),
    mistakes=(
        Mistake(
            lambda F, V, s: F.T @ V.T @ s,
            "행렬 V를 전치하여 곱했습니다.",
            "the matrix V is used transposed.",
        ),
        Mistake(
            lambda F, V, s: F.T @ s,
            "행렬 V가 스코어에 영향을 주지 않습니다.",
            "the matrix V has no influence on the scores.",
        ),
        Mistake(
            lambda F, V, s: softmax(F.T @ V @ s),
            "스코어가 아니라, 소프트맥스를 거친 가중치입니다.",
            "these are weights, behind the softmax, not scores.",
        ),
    ),
)

MLP_SCORES = FunctionExercise(
    name="mlp_scores",
    arguments=("F", "s", "v", "W", "V"),
    draw=_draw_mlp,
    reference=mlp_scores,
    returns=("scores",),
    mistakes=(
        Mistake(
            lambda F, s, v, W, V: v @ (W @ F + (V @ s)[:, None]),
            "tanh를 거치지 않았습니다.",
            "there is no tanh in these scores.",
        ),
        Mistake(
            lambda F, s, v, W, V: v @ np.tanh(V @ F + (W @ s)[:, None]),
            "W와 V가 서로 바뀌었습니다. 이 표기에서 W는 F에, V는 s에 곱합니다.",
            "W and V have changed places: in this notation W is on F, and V on s.",
        ),
    ),
)

FUNCTIONS = (CONTEXT, BILINEAR_SCORES, MLP_SCORES)
