"""Lesson 10, what the decoder is fed: the word alone, and input feeding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.function_exercise import FunctionExercise, Inputs, Mistake
from attnlab.course.reference import normal, softmax

Array = NDArray[Any]


def _beside(first: Array, second: Array) -> Array:
    return np.concatenate([first, second], axis=1)


def feed_word(logits: Array, embeddings: Array) -> Array:
    fed: Array = embeddings[logits.argmax(1)]
    return fed


def feed_softmax(logits: Array, embeddings: Array) -> Array:
    return _beside(feed_word(logits, embeddings), softmax(logits))


def feed_attentional(logits: Array, embeddings: Array, attentional: Array) -> Array:
    return _beside(feed_word(logits, embeddings), attentional)


# Batch, vocabulary, width of the embeddings; the batch is as large as the vocabulary in the second.
SIZES = ((3, 6, 4), (5, 5, 5), (1, 7, 2))


def _draw(random: np.random.Generator) -> list[Inputs]:
    drawn: list[Inputs] = []
    for batch, words, width in SIZES:
        drawn.append((2 * normal(random, batch, words), normal(random, words, width)))
    return drawn


def _draw_attentional(random: np.random.Generator) -> list[Inputs]:
    return [
        (logits, embeddings, normal(random, len(logits), 5)) for logits, embeddings in _draw(random)
    ]


def _one_hot(logits: Array) -> Array:
    vectors: Array = np.eye(logits.shape[1])[logits.argmax(1)]
    return vectors


FEED_WORD = FunctionExercise(
    name="feed_word",
    arguments=("logits", "embeddings"),
    draw=_draw,
    reference=feed_word,
    returns=("fed",),
    gradient=False,  # the choice of a word has none
    mistakes=(
        Mistake(
            lambda logits, embeddings: softmax(logits) @ embeddings,
            "한 단어의 임베딩 벡터가 아니라, 확률로 섞은 임베딩 벡터입니다.",
            "these are embeddings mixed by probability, not that of one word.",
        ),
        Mistake(
            lambda logits, embeddings: embeddings[logits.argmin(1)],
            "확률이 가장 낮은 단어를 넣었습니다.",
            "the least likely word is fed.",
        ),
    ),
)

FEED_SOFTMAX = FunctionExercise(
    name="feed_softmax",
    arguments=("logits", "embeddings"),
    draw=_draw,
    reference=feed_softmax,
    returns=("fed",),
    mistakes=(
        Mistake(
            lambda logits, embeddings: _beside(feed_word(logits, embeddings), _one_hot(logits)),
            "연결한 벡터가 확률 분포가 아니라 원-핫 벡터입니다. 확신의 정도가 사라졌습니다.",
            "the joined vector is one-hot, not the distribution: how sure the model was is lost.",
        ),
        Mistake(
            lambda logits, embeddings: _beside(feed_word(logits, embeddings), logits),
            "연결한 벡터의 합이 1이 아닙니다. 소프트맥스를 거치기 전의 로짓입니다.",
            "the joined vector does not sum to one: it is taken before the softmax.",
        ),
        Mistake(
            lambda logits, embeddings: _beside(softmax(logits), feed_word(logits, embeddings)),
            "두 부분의 순서가 [임베딩 벡터; 분포]가 아닙니다.",
            "the two parts are not in the order [embedding; distribution].",
        ),
        Mistake(
            lambda logits, embeddings: _beside(feed_word(logits, embeddings), softmax(logits, 0)),
            "확률을 단어 축이 아니라 배치 축으로 정규화했습니다.",
            "the distribution sums to one over the batch, not over the words.",
        ),
        Mistake(
            lambda logits, embeddings: _beside(softmax(logits) @ embeddings, softmax(logits)),
            "앞부분이 한 단어의 임베딩 벡터가 아니라, 확률로 섞은 임베딩 벡터입니다.",
            "the first part is a mixture of embeddings, not that of one word.",
        ),
    ),
)

FEED_ATTENTIONAL = FunctionExercise(
    name="feed_attentional",
    arguments=("logits", "embeddings", "attentional"),
    draw=_draw_attentional,
    reference=feed_attentional,
    returns=("fed",),
    gradient=False,  # the logits only choose a word
    mistakes=(
        Mistake(
            lambda logits, embeddings, attentional: _beside(
                attentional, feed_word(logits, embeddings)
            ),
            "두 부분의 순서가 [임베딩 벡터; s̃]가 아닙니다.",
            "the two parts are not in the order [embedding; s̃].",
        ),
        Mistake(
            lambda logits, embeddings, attentional: _beside(
                feed_word(logits, embeddings), np.tanh(attentional)
            ),
            "s̃를 tanh에 한 번 더 넣었습니다.",
            "s̃ goes through a tanh once more.",
        ),
        Mistake(
            lambda logits, embeddings, attentional: _beside(
                softmax(logits) @ embeddings, attentional
            ),
            "앞부분이 한 단어의 임베딩 벡터가 아니라, 확률로 섞은 임베딩 벡터입니다.",
            "the first part is a mixture of embeddings, not that of one word.",
        ),
    ),
)

FUNCTIONS = (FEED_WORD, FEED_SOFTMAX, FEED_ATTENTIONAL)
