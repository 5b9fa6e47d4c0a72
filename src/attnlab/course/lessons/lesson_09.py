"""Lesson 9, pads: a batch of one length, and its mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake

Array = NDArray[Any]
PRE, POST = "pre", "post"


def pad(sentences: Sequence[Sequence[int]], symbol: int, side: str) -> tuple[Array, Array]:
    longest = max(len(sentence) for sentence in sentences)
    tokens = np.full((len(sentences), longest), symbol)
    mask = np.zeros((len(sentences), longest), dtype=bool)
    for row, sentence in enumerate(sentences):
        start = longest - len(sentence) if side == PRE else 0
        tokens[row, start : start + len(sentence)] = sentence
        mask[row, start : start + len(sentence)] = True
    return tokens, mask


def _draw(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for symbol, side, lengths in (
        (0, POST, (3, 5, 1)),
        (0, PRE, (2, 4, 4, 3)),
        (0, PRE, (3,)),
        (9, POST, (1, 6)),  # a pad need not be 0
        (0, POST, (2, 2)),
    ):
        sentences = [random.integers(1, 9, length).tolist() for length in lengths]
        drawn.append((sentences, symbol, side))
    # A language in which 0 is a word, as the mask must not be read off the tokens.
    drawn.append(([[4, 0, 2], [0]], 0, POST))
    return drawn


def _other_side(side: str) -> str:
    return POST if side == PRE else PRE


def _mask_of_tokens(
    sentences: Sequence[Sequence[int]], symbol: int, side: str
) -> tuple[Array, Array]:
    tokens, _ = pad(sentences, symbol, side)
    return tokens, tokens != symbol


def _turned_mask(sentences: Sequence[Sequence[int]], symbol: int, side: str) -> tuple[Array, Array]:
    tokens, mask = pad(sentences, symbol, side)
    return tokens, ~mask


def _full_mask(sentences: Sequence[Sequence[int]], symbol: int, side: str) -> tuple[Array, Array]:
    tokens, mask = pad(sentences, symbol, side)
    return tokens, np.ones_like(mask)


PAD = FunctionExercise(
    name="pad",
    arguments=("sentences", "symbol", "side"),
    draw=_draw,
    reference=pad,
    returns=("tokens", "mask"),
    gradient=False,
    mistakes=(
        Mistake(
            lambda sentences, symbol, side: pad(sentences, symbol, _other_side(side)),
            "패딩이 side가 가리키는 쪽의 반대쪽에 있습니다.",
            "the pads are on the other side than side says.",
        ),
        Mistake(
            lambda sentences, symbol, side: pad(sentences, symbol, POST),
            "side가 결과에 영향을 주지 않습니다. 패딩이 언제나 뒤에 있습니다.",
            "side has no influence: the pads stand always behind.",
        ),
        Mistake(
            _full_mask,
            "마스크가 패딩에서도 True입니다.",
            "the mask is True at pads, too.",
        ),
        Mistake(
            _turned_mask,
            "마스크가 거꾸로입니다. 마스크는 실제 토큰에서 True입니다.",
            "the mask is turned around: it is True at real tokens.",
        ),
        Mistake(
            _mask_of_tokens,
            "마스크가 패딩 기호와 번호가 같은 실제 단어를 패딩으로 표시합니다.",
            "a real word that has the id of the pad is a pad in the mask.",
        ),
        Mistake(
            lambda sentences, symbol, side: (
                pad(sentences, 0, side)[0],
                pad(sentences, 0, side)[1],
            ),
            "빈자리를 symbol이 아니라 언제나 0으로 채웠습니다.",
            "the gaps are filled with 0, whatever symbol is.",
        ),
    ),
)

FUNCTIONS = (PAD,)
