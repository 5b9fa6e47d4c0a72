"""Lesson 8, projections and batched products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
from attnlab.course.properties import weights_properties
from attnlab.course.reference import (
    dot_scores,
    masked_softmax,
    masks,
    normal,
    softmax,
    weighted_sum,
)

Array = NDArray[Any]


def energy(query: Array, keys: Array, W_a: Array) -> Array:
    product: Array = (query @ W_a) @ keys.transpose(0, 2, 1)
    return product


def _draw_energy(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    # B, T, S and the width, which is that of both in the first two
    for batch, steps, length, width, of_keys in (
        (3, 1, 5, 4, 4),
        (4, 4, 4, 4, 4),
        (1, 1, 3, 4, 6),
        (2, 3, 5, 3, 2),
    ):
        query, keys = normal(random, batch, steps, width), normal(random, batch, length, of_keys)
        drawn.append((query, keys, normal(random, width, of_keys)))
    return drawn


def projected_attention(
    query: Array, states: Array, W_q: Array, W_k: Array, mask: Array
) -> tuple[Array, Array]:
    weights = masked_softmax(dot_scores(query @ W_q.T, states @ W_k.T), mask)
    return weighted_sum(weights, states), weights


def _draw_projected(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for mask, (width, of_states, common) in zip(
        masks(), ((4, 4, 4), (3, 4, 4), (4, 6, 2), (3, 5, 5)), strict=True
    ):
        batch, length = mask.shape
        query, states = normal(random, batch, width), normal(random, batch, length, of_states)
        matrices = normal(random, common, width), normal(random, common, of_states)
        drawn.append((query, states, *matrices, mask))
    return drawn


def _of_projected_keys(
    query: Array, states: Array, W_q: Array, W_k: Array, mask: Array
) -> tuple[Array, Array]:
    _, weights = projected_attention(query, states, W_q, W_k, mask)
    return weighted_sum(weights, states @ W_k.T), weights


def _unmasked(
    query: Array, states: Array, W_q: Array, W_k: Array, mask: Array
) -> tuple[Array, Array]:
    weights = softmax(dot_scores(query @ W_q.T, states @ W_k.T))
    return weighted_sum(weights, states), weights


ENERGY = FunctionExercise(
    name="energy",
    arguments=("query", "keys", "W_a"),
    draw=_draw_energy,
    reference=energy,
    returns=("energy",),
    mistakes=(
        Mistake(
            lambda query, keys, W_a: energy(query, keys, W_a.T),
            "가중치 행렬 W_a를 전치하여 곱했습니다.",
            "the matrix W_a is used transposed.",
        ),
        Mistake(
            lambda query, keys, W_a: softmax(energy(query, keys, W_a)),
            "에너지가 아니라, 소프트맥스를 거친 가중치입니다.",
            "these are weights, behind the softmax, not energies.",
        ),
        Mistake(
            lambda query, keys, W_a: (query @ W_a) @ keys,
            "키를 전치하지 않고 곱했습니다. 모양이 우연히 맞았을 뿐입니다.",
            "the keys are not transposed; the shapes fit by chance.",
        ),
        Mistake(
            lambda query, keys, W_a: query @ keys.transpose(0, 2, 1),
            "가중치 행렬 W_a가 결과에 영향을 주지 않습니다.",
            "the matrix W_a has no influence on the result.",
        ),
    ),
)

PROJECTED_ATTENTION = FunctionExercise(
    name="projected_attention",
    arguments=("query", "states", "W_q", "W_k", "mask"),
    draw=_draw_projected,
    reference=projected_attention,
    returns=("context", "weights"),
    mistakes=(
        Mistake(
            _of_projected_keys,
            "가중치는 맞지만, 컨텍스트 벡터가 원래 상태가 아니라 투영한 키의 가중합입니다.",
            "the weights are right, but the context sums the projected keys, not the states.",
        ),
        Mistake(_unmasked, "패딩이 가중치를 받습니다.", "pads get weight."),
        Mistake(
            lambda query, states, W_q, W_k, mask: projected_attention(
                query / np.sqrt(len(W_q)), states, W_q, W_k, mask
            ),
            "스코어의 크기가 내적보다 작습니다. 이 문제의 스코어는 나누지 않은 내적입니다.",
            "the scores are smaller than dot products; this exercise does not scale them.",
        ),
        Mistake(
            lambda query, states, W_q, W_k, mask: projected_attention(
                query, states, W_q.T, W_k.T, mask
            ),
            "두 가중치 행렬을 전치하여 곱했습니다.",
            "both matrices are used transposed.",
        ),
    ),
    properties=weights_properties(result=1, mask=4),
)

FUNCTIONS = (ENERGY, PROJECTED_ATTENTION)
