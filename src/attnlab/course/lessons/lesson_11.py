"""Lesson 11, teacher forcing: the decoder's inputs, and what is fed with a ratio."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
from attnlab.course.reference import normal

Array = NDArray[Any]


def forced_inputs(targets: Array, bos: int) -> Array:
    first = np.full((len(targets), 1), bos)
    return np.concatenate([first, targets[:, :-1]], axis=1)


def next_words(reference: Array, logits: Array, forced: Array) -> Array:
    return np.where(forced, reference, logits.argmax(1))


def _draw_targets(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for bos, shape in ((1, (3, 5)), (2, (1, 4)), (1, (4, 1)), (0, (5, 5))):
        drawn.append((random.integers(3, 12, shape), bos))
    return drawn


def _draw_coins(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    # The last batch is large: coins of one's own must not agree with these by luck.
    many = [True, True, False, False] * 5
    for forced in ([True, False, True, False], [False], [True], [False, True, False], many):
        batch = len(forced)
        # Reference and guess differ, so that it shows which of them is fed.
        logits = normal(random, batch, 9)
        reference = (logits.argmax(1) + random.integers(1, 9, batch)) % 9
        drawn.append((reference, logits, np.array(forced)))
    return drawn


FORCED_INPUTS = FunctionExercise(
    name="forced_inputs",
    arguments=("targets", "bos"),
    draw=_draw_targets,
    reference=forced_inputs,
    returns=("inputs",),
    gradient=False,
    mistakes=(
        Mistake(
            lambda targets, bos: targets,
            "각 시점의 입력이 바로 그 시점에 맞혀야 할 단어입니다. 답을 미리 보여 줍니다.",
            "each step is fed the very word that it must predict: the answer is given away.",
        ),
        Mistake(
            lambda targets, bos: np.roll(targets, 1, axis=1),
            "첫 시점의 입력이 시작 기호가 아니라 문장의 마지막 토큰입니다.",
            "the first step is fed the last token of the sentence, not the start symbol.",
        ),
        Mistake(
            lambda targets, bos: np.concatenate(
                [targets[:, 1:], np.full((len(targets), 1), bos)], axis=1
            ),
            "문장을 반대쪽으로 밀었습니다. 다음에 올 단어가 입력되고 있습니다.",
            "the sentence is shifted the other way: each step is fed a word of the future.",
        ),
    ),
)

NEXT_WORDS = FunctionExercise(
    name="next_words",
    arguments=("reference", "logits", "forced"),
    draw=_draw_coins,
    reference=next_words,
    returns=("words",),
    gradient=False,
    mistakes=(
        Mistake(
            lambda reference, logits, forced: np.where(forced, logits.argmax(1), reference),
            "동전이 거꾸로입니다. forced가 True인 문장에 예측한 단어를 넣었습니다.",
            "the coin is turned around: where forced is True, the guess is fed.",
        ),
        Mistake(
            lambda reference, logits, forced: reference,
            "언제나 정답을 넣었습니다. forced가 결과에 영향을 주지 않습니다.",
            "the reference is fed always; forced has no influence.",
        ),
        Mistake(
            lambda reference, logits, forced: logits.argmax(1),
            "언제나 예측한 단어를 넣었습니다. forced가 결과에 영향을 주지 않습니다.",
            "the guess is fed always; forced has no influence.",
        ),
        Mistake(
            lambda reference, logits, forced: reference if forced[0] else logits.argmax(1),
            "첫 문장의 동전을 배치 전체에 썼습니다.",
            "the coin of the first sentence decides for the whole batch.",
        ),
    ),
)

FUNCTIONS = (FORCED_INPUTS, NEXT_WORDS)
