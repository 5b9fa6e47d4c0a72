"""Lesson 6, Bahdanau's attention as matrices, and the step of its decoder."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
from attnlab.course.pad_mistakes import pad_mistakes
from attnlab.course.reference import masked_softmax, masks, normal, softmax, weighted_sum

Array = NDArray[Any]


def energies(s: Array, H: Array, W_a: Array, W_b: Array, W_c: Array) -> Array:
    row: Array = W_a @ np.tanh((W_b @ s)[:, None] + W_c @ H)
    return row


def _draw_energies(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    # The width A, that of s, that of the columns of H, and their number; all alike in the second.
    for inner, width, column, length in ((5, 4, 4, 6), (4, 4, 4, 4), (3, 4, 6, 1)):
        drawn.append(
            (
                normal(random, width),
                normal(random, column, length),
                normal(random, inner),
                normal(random, inner, width),
                normal(random, inner, column),
            )
        )
    return drawn


def _scores(state: Array, keys: Array, W_a: Array, W_b: Array, W_c: Array, squash: Any) -> Array:
    """State (B, H) and keys (B, S, D) -> (B, S)."""
    scores: Array = squash((state @ W_b.T)[:, None] + keys @ W_c.T) @ W_a
    return scores


def _bahdanau_step(
    state: Array,
    embedding: Array,
    encoder_states: Array,
    mask: Array,
    W_a: Array,
    W_b: Array,
    W_c: Array,
    W: Array,
    U: Array,
    b: Array,
    *,
    weigh: Any = masked_softmax,
    score_squash: Any = np.tanh,
    context_first: bool = False,
    squash: Any = np.tanh,
    remember: Any = lambda state, U: state @ U.T,
    swapped: bool = False,
) -> tuple[Array, Array]:
    """The step, and its frequent mistakes."""
    memory = remember(state, U)
    first, second = (W_c, W_b) if swapped else (W_b, W_c)
    scores = _scores(state, encoder_states, W_a, first, second, score_squash)
    weights = weigh(scores, mask)
    context = weighted_sum(weights, encoder_states)
    parts = [context, embedding] if context_first else [embedding, context]
    return squash(np.concatenate(parts, axis=1) @ W.T + memory + b), context


def _draw_step(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for mask in masks():
        batch, length = mask.shape
        sequences = normal(random, batch, 4), normal(random, batch, 4)
        encoder_states = normal(random, batch, length, 4)
        score = normal(random, 5), normal(random, 5, 4), normal(random, 5, 4)
        cell = 0.5 * normal(random, 4, 8), 0.5 * normal(random, 4, 4), normal(random, 4)
        drawn.append((*sequences, encoder_states, mask, *score, *cell))
    return drawn


def _wrong(**change: Any) -> Any:
    return lambda *inputs: _bahdanau_step(*inputs, **change)


def _without_bias(*inputs: Any) -> tuple[Array, Array]:
    without = (*inputs[:-1], np.zeros_like(inputs[-1]))
    return _bahdanau_step(*without)


ENERGIES = FunctionExercise(
    name="energies",
    arguments=("s", "H", "W_a", "W_b", "W_c"),
    draw=_draw_energies,
    reference=energies,
    returns=("energies",),
    mistakes=(
        Mistake(
            lambda s, H, W_a, W_b, W_c: W_a @ ((W_b @ s)[:, None] + W_c @ H),
            "tanh를 거치지 않았습니다.",
            "there is no tanh in these energies.",
        ),
        Mistake(
            lambda s, H, W_a, W_b, W_c: softmax(energies(s, H, W_a, W_b, W_c)),
            "에너지가 아니라, 소프트맥스를 거친 가중치입니다.",
            "these are weights, behind the softmax, not energies.",
        ),
        Mistake(
            lambda s, H, W_a, W_b, W_c: np.tanh((W_b @ s)[:, None] + W_c @ H).sum(0),
            "W_a가 결과에 영향을 주지 않습니다.",
            "W_a has no influence on the result.",
        ),
        Mistake(
            lambda s, H, W_a, W_b, W_c: W_a @ np.tanh(W_c @ H),
            "상태 s가 결과에 영향을 주지 않습니다.",
            "the state s has no influence on the result.",
        ),
    ),
)

BAHDANAU_STEP = FunctionExercise(
    name="bahdanau_step",
    arguments=(
        "state",
        "embedding",
        "encoder_states",
        "mask",
        "W_a",
        "W_b",
        "W_c",
        "W",
        "U",
        "b",
    ),
    draw=_draw_step,
    reference=_bahdanau_step,
    returns=("new_state", "context"),
    mistakes=(
        *pad_mistakes(lambda weigh: _wrong(weigh=weigh)),
        Mistake(
            _wrong(score_squash=lambda x: x),
            "스코어를 만들 때 tanh를 거치지 않았습니다.",
            "there is no tanh in the scores.",
        ),
        Mistake(
            _wrong(context_first=True),
            "컨텍스트 벡터는 맞지만, 셀의 입력이 [y; c]의 순서가 아닙니다.",
            "the context is right, but the cell's input is not in the order [y; c].",
        ),
        Mistake(
            _wrong(squash=lambda x: x),
            "컨텍스트 벡터는 맞지만, 새 상태의 성분이 -1과 1 사이에 있지 않습니다.",
            "the context is right, but the new state is not between -1 and 1.",
        ),
        Mistake(
            _wrong(remember=lambda state, U: 0.0),
            "컨텍스트 벡터는 맞지만, 이전 상태가 새 상태로 이어지지 않습니다.",
            "the context is right, but the previous state does not go on into the new one.",
        ),
        Mistake(
            _wrong(remember=lambda state, U: state @ U),
            "컨텍스트 벡터는 맞지만, 행렬 U를 전치하여 곱했습니다.",
            "the context is right, but the matrix U is used transposed.",
        ),
        Mistake(
            _without_bias,
            "컨텍스트 벡터는 맞지만, 셀의 편향이 빠졌습니다.",
            "the context is right, but the bias of the cell is missing.",
        ),
        Mistake(
            _wrong(swapped=True),
            "W_b와 W_c가 서로 바뀌었습니다.",
            "W_b and W_c have changed places.",
        ),
    ),
)

FUNCTIONS = (ENERGIES, BAHDANAU_STEP)
