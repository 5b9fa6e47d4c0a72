"""Lesson 3, Attention(Q, K, V): weights from scores, and the weighted sum of the values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
from attnlab.course.properties import weights_properties
from attnlab.course.reference import (
    dot_scores,
    mask_behind,
    masked_softmax,
    masks,
    normal,
    softmax,
    weighted_sum,
)

Array = NDArray[Any]


def attention(query: Array, keys: Array, values: Array, mask: Array) -> tuple[Array, Array]:
    weights = masked_softmax(dot_scores(query, keys), mask)
    return weighted_sum(weights, values), weights


def _draw_scores(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = [(2 * normal(random, *mask.shape), mask) for mask in masks()]
    # A mask that adds a small number hides nothing where the scores themselves are small.
    mask = mask_behind([4, 2])
    drawn.append((random.uniform(-190, -170, mask.shape), mask))
    return drawn


def _draw_attention(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for mask in masks():
        batch, length = mask.shape
        query, keys = normal(random, batch, 4), normal(random, batch, length, 4)
        drawn.append((query, keys, normal(random, batch, length, 4), mask))
    # Values of another width than the keys
    mask = mask_behind([3, 1])
    query, keys = normal(random, 2, 5), normal(random, 2, 3, 5)
    drawn.append((query, keys, normal(random, 2, 3, 2), mask))
    return drawn


def _over_batch(scores: Array, mask: Array) -> Array:
    return softmax(np.where(mask, scores, -np.inf), axis=0)


def _hidden_afterwards(scores: Array, mask: Array) -> Array:
    return softmax(scores) * mask


def _both(query: Array, keys: Array, values: Array, mask: Array, weights: Any) -> Any:
    found = weights(dot_scores(query, keys), mask)
    return weighted_sum(found, values), found


ATTENTION_WEIGHTS = FunctionExercise(
    name="attention_weights",
    arguments=("scores", "mask"),
    draw=_draw_scores,
    reference=masked_softmax,
    returns=("weights",),
    mistakes=(
        Mistake(
            lambda scores, mask: masked_softmax(scores, ~mask),
            "마스크를 거꾸로 썼습니다. 마스크는 실제 토큰에서 True입니다.",
            "the mask is turned around: it is True at real tokens.",
        ),
        Mistake(
            _over_batch,
            "가중치의 합이 한 문장의 단어들이 아니라 배치의 문장들에 걸쳐 1입니다.",
            "the weights sum to one over the sentences of the batch, not over the words of one.",
        ),
        Mistake(
            lambda scores, mask: softmax(np.where(mask, scores, -100.0)),
            "스코어가 아주 작은 문장에서 패딩이 가중치를 받습니다.",
            "pads get weight in a sentence whose scores are very small.",
        ),
        Mistake(
            lambda scores, mask: softmax(scores * mask),
            "패딩이 가중치를 받습니다. 패딩의 스코어가 0이 되었을 뿐입니다.",
            "pads get weight: their scores are 0, which is a score like any other.",
        ),
    ),
    properties=weights_properties(result=0, mask=1),
)

ATTENTION = FunctionExercise(
    name="attention",
    arguments=("query", "keys", "values", "mask"),
    draw=_draw_attention,
    reference=attention,
    returns=("context", "weights"),
    mistakes=(
        Mistake(
            lambda query, keys, values, mask: attention(query, keys, values, ~mask),
            "마스크를 거꾸로 썼습니다. 마스크는 실제 토큰에서 True입니다.",
            "the mask is turned around: it is True at real tokens.",
        ),
        Mistake(
            lambda query, keys, values, mask: (
                weighted_sum(masked_softmax(dot_scores(query, keys), mask), keys),
                masked_softmax(dot_scores(query, keys), mask),
            ),
            "가중치는 맞지만, 컨텍스트 벡터가 값이 아니라 키의 가중합입니다.",
            "the weights are right, but the context is a sum of the keys, not of the values.",
        ),
        Mistake(
            lambda query, keys, values, mask: (
                (values * mask[..., None]).sum(1) / mask.sum(1)[:, None],
                masked_softmax(dot_scores(query, keys), mask),
            ),
            "가중치는 맞지만 쓰이지 않았습니다. 컨텍스트 벡터가 값들의 단순 평균입니다.",
            "the weights are right, but the context does not use them: it is the plain mean.",
        ),
        Mistake(
            lambda query, keys, values, mask: (
                values.mean(1),
                masked_softmax(dot_scores(query, keys), mask),
            ),
            "컨텍스트 벡터가 패딩까지 넣은 값들의 단순 평균입니다.",
            "the context is the plain mean of the values, pads included.",
        ),
        Mistake(
            lambda query, keys, values, mask: (
                weighted_sum(np.where(mask, dot_scores(query, keys), 0), values),
                masked_softmax(dot_scores(query, keys), mask),
            ),
            "컨텍스트 벡터를 만들 때 값에 가중치가 아니라 스코어를 곱했습니다.",
            "the context multiplies the values by the scores, not by the weights.",
        ),
        Mistake(
            lambda query, keys, values, mask: (
                weighted_sum(softmax(dot_scores(query, keys)), values),
                masked_softmax(dot_scores(query, keys), mask),
            ),
            "가중치는 맞지만, 컨텍스트 벡터는 마스크를 쓰기 전의 가중치로 만들었습니다.",
            "the weights are right, but the context is made of the weights without a mask.",
        ),
        Mistake(
            lambda query, keys, values, mask: _both(query, keys, values, mask, _over_batch),
            "가중치의 합이 배치의 문장들에 걸쳐 1입니다.",
            "the weights sum to one over the sentences of the batch.",
        ),
        Mistake(
            lambda query, keys, values, mask: _both(
                query / np.sqrt(query.shape[1]), keys, values, mask, masked_softmax
            ),
            "스코어의 크기가 내적보다 작습니다. 이 문제의 스코어는 나누지 않은 내적입니다.",
            "the scores are smaller than dot products; this exercise does not scale them.",
        ),
    ),
    properties=weights_properties(result=1, mask=3),
)

FUNCTIONS = (ATTENTION_WEIGHTS, ATTENTION)
