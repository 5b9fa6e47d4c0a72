"""Holm's correction and the letters, by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from attnlab.evaluation.holm import holm
from attnlab.evaluation.letter_groups import letter_groups


def test_holm_by_hand() -> None:
    # 0.01 * 4; 0.04 * 2 = 0.08 behind 0.03 * 3 = 0.09, which it may not fall below; 0.9 * 1.
    assert holm([0.04, 0.01, 0.9, 0.03]) == pytest.approx([0.09, 0.04, 0.9, 0.09])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("count", "apart", "expected"),
    [
        (1, [], ["a"]),
        (3, [], ["a", "a", "a"]),
        (2, [(1, 0)], ["a", "b"]),
        (3, [(0, 2)], ["a", "ab", "b"]),
        (3, [(0, 1), (0, 2), (1, 2)], ["a", "b", "c"]),
        # Piepho's kind of example: the ends differ, the middle is like both sides of it.
        (4, [(0, 2), (0, 3), (1, 3)], ["a", "ab", "bc", "c"]),
        (4, [(0, 1), (2, 3)], ["ab", "cd", "ac", "bd"]),
    ],
)
def test_letters_by_hand(count: int, apart: list[tuple[int, int]], expected: list[str]) -> None:
    assert letter_groups(count, apart) == expected


@pytest.mark.parametrize("seed", range(20))
def test_two_share_a_letter_exactly_where_they_are_not_apart(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = int(draw.integers(2, 9))
    pairs = list(combinations(range(count), 2))
    apart = {pair for pair in pairs if draw.random() < 0.5}
    letters = letter_groups(count, apart)
    assert all(letters)
    for one, other in pairs:
        assert bool(set(letters[one]) & set(letters[other])) == ((one, other) not in apart)


def test_groups_beyond_the_alphabet_are_numbered() -> None:
    found = letter_groups(54, combinations(range(54), 2))
    assert found[:2] + found[25:28] + found[51:] == ["a", "b", "z", "A", "B", "Z", "(52)", "(53)"]
