"""Lesson 6, Bahdanau's attention as matrices, and the step of its decoder."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
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


def _scores(state: Array, keys: Array, W_a: Array, W_b: Array, W_c: Array) -> Array:
    """State (B, H) and keys (B, S, D) -> (B, S)."""
    scores: Array = np.tanh((state @ W_b.T)[:, None] + keys @ W_c.T) @ W_a
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
    visible: bool = True,
    context_first: bool = False,
    squash: Any = np.tanh,
    recurrent: bool = True,
    swapped: bool = False,
) -> tuple[Array, Array]:
    """The step, and its frequent mistakes."""
    memory = state @ U.T if recurrent else 0.0
    first, second = (W_c, W_b) if swapped else (W_b, W_c)
    scores = _scores(state, encoder_states, W_a, first, second)
    weights = masked_softmax(scores, mask) if visible else softmax(scores)
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


ENERGIES = FunctionExercise(
    name="energies",
    arguments=("s", "H", "W_a", "W_b", "W_c"),
    draw=_draw_energies,
    reference=energies,
    returns=("energies",),
    mistakes=(
        Mistake(
            lambda s, H, W_a, W_b, W_c: W_a @ ((W_b @ s)[:, None] + W_c @ H),
            "하이퍼볼릭 탄젠트를 지나지 않았습니다.",
            "there is no tanh in these energies.",
        ),
        Mistake(
            lambda s, H, W_a, W_b, W_c: softmax(energies(s, H, W_a, W_b, W_c)),
            "에너지가 아니라, 소프트맥스를 지난 가중치입니다.",
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
        Mistake(_wrong(visible=False), "패딩이 가중치를 받습니다.", "pads get weight."),
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
            _wrong(recurrent=False),
            "컨텍스트 벡터는 맞지만, 이전 상태가 새 상태로 이어지지 않습니다.",
            "the context is right, but the previous state does not go on into the new one.",
        ),
        Mistake(
            _wrong(swapped=True),
            "W_b와 W_c가 서로 바뀌었습니다.",
            "W_b and W_c have changed places.",
        ),
    ),
)

FUNCTIONS = (ENERGIES, BAHDANAU_STEP)
