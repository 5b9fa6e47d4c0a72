"""Alignment error rate, offsets and wrong links, against counts done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from attnlab.evaluation.alignments import AlignmentStatistics

Sentence = tuple[ArrayLike, ArrayLike, ArrayLike]


def measured(*sentences: Sentence) -> AlignmentStatistics:
    """weights (T, S), sure links and possible links of each sentence."""
    statistics = AlignmentStatistics()
    for weights, sure, possible in sentences:
        statistics.update(weights, sure, possible, [f"token {t}" for t in range(len(np.asarray(weights)))])
    return statistics


# Target 0 -> source 1 (sure), 1 -> 0 (possible only), 2 -> 2 (wrong); target 3 has no link.
MIXED: Sentence = (
    [[0.1, 0.8, 0.1], [0.6, 0.2, 0.2], [0.0, 0.3, 0.7], [1, 0, 0]],
    [[0, 1], [2, 0]],
    [[0, 1], [2, 0], [1, 0], [1, 2]],
)
RIGHT: Sentence = (np.eye(2), [[0, 0]], [[0, 0]])
WIDE = np.zeros((2, 5))
WIDE[0, 3] = WIDE[1, 2] = 1


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        ([MIXED], 1 - (1 + 2) / (3 + 2)),
        ([MIXED, RIGHT], 1 - (2 + 3) / (4 + 3)),
        ([(np.eye(4)[[2, 0, 1, 3]], [[0, 2], [1, 0], [2, 1]], [])], 0),  # sure links are possible, too
        ([(np.eye(2), [[0, 0], [0, 0]], np.zeros((0, 2)))], 0),  # duplicates count once
        ([([[0.2, 0.8]], [[0, 0]], [[0, 0]])], 1),  # the strongest column is <eos>
        ([([[0.5, 0.5]], [[0, 0]], [])], 0),  # the first of equals is the strongest
        ([([[0.5, 0.5]], [[0, 1]], [])], 1),
        ([(WIDE, [[0, 3], [1, 2]], [])], 0),
        ([(np.eye(2), [], [])], None),
        ([], None),
    ],
)
def test_alignment_error_rate_follows_the_formula(sentences: list[Sentence], expected: float | None) -> None:
    assert measured(*sentences).error_rate() == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("outside", [[0, 2], [2, 0], [-1, 0], [0, -1]])
def test_alignment_statistics_refuse_links_outside_of_the_weights(outside: list[int]) -> None:
    for sure, possible in (([outside], []), ([], [outside])):
        with pytest.raises(ValueError, match=r"links must lie inside weights of shape \(2, 2\), got"):
            measured((np.eye(2), sure, possible))


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        # Target tokens look at 0, 2, 4, 0; offsets are counted from the nearest right token, the last has no link.
        ([(np.eye(5)[[0, 2, 4, 0]], [], [[0, 0], [1, 1], [2, 0], [2, 3]])], {0: 1, 1: 2}),
        ([(np.eye(4)[[0, 3]], [], [[0, 2], [1, 3]])], {-2: 1, -1: 0, 0: 1}),
        ([(np.eye(2), [], [[1, 1]])] * 3, {0: 3}),
        ([(np.eye(2), [], [])], {}),
    ],
)
def test_offsets_are_counted_from_the_nearest_right_token(sentences: list[Sentence], expected: dict[int, int]) -> None:
    assert measured(*sentences).offsets() == [{"offset": offset, "tokens": expected[offset]} for offset in expected]


def test_wrong_links_are_counted_by_target_token_the_most_wrong_first() -> None:
    statistics = AlignmentStatistics()
    for _ in range(2):
        # The second "b" looks at the first column, where it has no link; <eos> has no link at all.
        possible = [[0, 0], [0, 1], [1, 1], [2, 1], [2, 2]]
        statistics.update(np.eye(3)[[0, 1, 0, 2]], [], possible, ["a", "b", "b", "<eos>"])
    assert statistics.wrong_links() == [
        {"token": "b", "links": 4, "wrong": 2},
        {"token": "a", "links": 2, "wrong": 0},
    ]
