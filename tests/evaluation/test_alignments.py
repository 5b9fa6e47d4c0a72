"""Alignment error rate, offsets and wrong links, against counts done by hand."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.evaluation.alignments import AlignmentErrorRate, AlignmentOffsets, WrongLinks


def test_aer_perfect_alignment_is_zero() -> None:
    rate = AlignmentErrorRate()
    rate.update(np.eye(4)[[2, 0, 1, 3]], [[0, 2], [1, 0], [2, 1]], [[0, 2], [1, 0], [2, 1]])
    assert rate.compute() == 0


def test_aer_of_two_sentences_follows_the_formula() -> None:
    rate = AlignmentErrorRate()
    # Target 0 -> source 1 (sure), 1 -> 0 (possible only), 2 -> 2 (wrong); target 3 has no link.
    weights = [[0.1, 0.8, 0.1], [0.6, 0.2, 0.2], [0.0, 0.3, 0.7], [1, 0, 0]]
    rate.update(weights, [[0, 1], [2, 0]], [[0, 1], [2, 0], [1, 0], [1, 2]])
    assert rate.compute() == pytest.approx(1 - (1 + 2) / (3 + 2))
    rate.update(np.eye(2), [[0, 0]], [[0, 0]])
    assert rate.compute() == pytest.approx(1 - (2 + 3) / (4 + 3))


def test_aer_counts_sure_links_as_possible_and_duplicates_once() -> None:
    rate = AlignmentErrorRate()
    rate.update(np.eye(2), [[0, 0], [0, 0]], np.zeros((0, 2)))
    assert rate.compute() == 0


def test_aer_link_to_the_eos_column_is_wrong() -> None:
    rate = AlignmentErrorRate()
    rate.update([[0.2, 0.8]], [[0, 0]], [[0, 0]])
    assert rate.compute() == 1


def test_aer_without_links_is_none_and_refuses_links_outside() -> None:
    rate = AlignmentErrorRate()
    rate.update(np.eye(2), [], [])
    assert rate.compute() is None
    for outside in ([[0, 2]], [[2, 0]], [[-1, 0]], [[0, -1]], [[0, 0], [1, 2]]):
        with pytest.raises(ValueError, match="sure links must lie inside the 2 target and 2 source positions"):
            rate.update(np.eye(2), outside, [])
        with pytest.raises(ValueError, match="possible links must lie inside the 2 target and 2 source positions"):
            rate.update(np.eye(2), [], outside)


@pytest.mark.parametrize("weights", [[0.5, 0.5], [[[1.0]]], [[np.nan, 1.0]], [[np.inf, 0.0]]])
def test_alignment_error_rate_refuses_weights_that_are_no_finite_matrix(weights: list[object]) -> None:
    with pytest.raises(ValueError, match=r"finite matrix \(T, S\)"):
        AlignmentErrorRate().update(weights, [], [])


def test_aer_links_the_first_of_equal_weights_and_resets() -> None:
    rate = AlignmentErrorRate()
    rate.update([[0.5, 0.5], [0.0, 1.0]], [[0, 0], [1, 1]], [])
    assert rate.compute() == 0
    rate.update([[0.5, 0.5]], [[0, 1]], [])
    assert rate.compute() == pytest.approx(1 - (2 + 2) / (3 + 3))
    rate.reset()
    assert rate.compute() is None


def test_aer_accepts_weights_that_are_not_square() -> None:
    rate = AlignmentErrorRate()
    weights = np.zeros((2, 5))
    weights[0, 3] = weights[1, 2] = 1
    rate.update(weights, [[0, 3], [1, 2]], [])
    rate.update(np.zeros((3, 0)), [], [])  # a source without tokens
    assert rate.compute() == 0


def test_offsets_are_counted_from_the_nearest_right_token():
    offsets = AlignmentOffsets()
    weights = np.eye(5)[[0, 2, 4, 0]]  # (T, S): where each of four target tokens looks
    offsets.update(weights, [[0, 0], [1, 1], [2, 0], [2, 3]])  # the last target token has no link
    assert offsets.compute() == [{"offset": 0, "tokens": 1}, {"offset": 1, "tokens": 2}]


def test_offsets_before_the_right_token_are_negative_and_gaps_filled():
    offsets = AlignmentOffsets()
    offsets.update(np.eye(4)[[0, 3]], [[0, 2], [1, 3]])
    assert offsets.compute() == [
        {"offset": -2, "tokens": 1},
        {"offset": -1, "tokens": 0},
        {"offset": 0, "tokens": 1},
    ]


def test_offsets_add_up_over_sentences_and_are_empty_without_links():
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
