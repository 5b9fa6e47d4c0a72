"""How far beside the right source token the attention looks."""

from __future__ import annotations

import numpy as np

from attnlab.evaluation.alignment_offsets import AlignmentOffsets, WrongLinks


def test_offsets_are_counted_from_the_nearest_right_token():
    offsets = AlignmentOffsets()
    weights = np.eye(5)[[0, 2, 4, 0]]  # (T, S): where each of four target tokens looks
    offsets.update(weights, [[0, 0], [1, 1], [2, 0], [2, 3]])  # the last target token has no link
    assert offsets.compute() == [{"offset": 0, "tokens": 1}, {"offset": 1, "tokens": 2}]


def test_a_look_before_the_right_token_is_negative_and_gaps_are_filled():
    offsets = AlignmentOffsets()
    offsets.update(np.eye(4)[[0, 3]], [[0, 2], [1, 3]])
    assert offsets.compute() == [
        {"offset": -2, "tokens": 1},
        {"offset": -1, "tokens": 0},
        {"offset": 0, "tokens": 1},
    ]


def test_sentences_add_up_and_none_has_no_rows():
    offsets = AlignmentOffsets()
    assert offsets.compute() == []
    offsets.update(np.eye(2), [])
    assert offsets.compute() == []
    for _ in range(3):
        offsets.update(np.eye(2), [[1, 1]])
    assert offsets.compute() == [{"offset": 0, "tokens": 3}]


def test_wrong_links_are_counted_by_target_token_the_most_wrong_first():
    wrong = WrongLinks()
    for _ in range(2):
        # The second "b" looks at the first column, where it has no link; <eos> has no link at all.
        wrong.update(np.eye(3)[[0, 1, 0, 2]], [[0, 0], [0, 1], [1, 1], [2, 1], [2, 2]], ["a", "b", "b", "<eos>"])
    assert wrong.compute() == [
        {"token": "b", "links": 4, "wrong": 2},
        {"token": "a", "links": 2, "wrong": 0},
    ]
