"""Significance: p values worked out by hand, Holm's correction, and letters."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm, t

from attnlab.evaluation.significance import (
    SystemSample,
    contrast,
    difference_of_systems,
    holm,
    letter_groups,
)

STILL = np.zeros(3)


def measured(
    values: list[float],
    sentences: int | None,
    by_sentences: np.ndarray = STILL,
    by_seeds: np.ndarray = STILL,
) -> SystemSample:
    return SystemSample(np.array(values), by_sentences, by_seeds, sentences)


def p_of_difference(first: SystemSample, second: SystemSample) -> float:
    found = difference_of_systems(first, second, 0.95)
    assert found is not None
    return found.p


def two_sided(difference: float, variance: float, degrees: float) -> float:
    return 2 * float(t.sf(difference / variance**0.5, degrees))


APART = np.array([0.0, 6.0, -6.0])  # variance 36
SEEDS = [1.0, 5.0], [-3.0, -3.0, 0.0]
OF_SEEDS = (4 + 1) ** 2 / (4**2 / 1 + 1**2 / 2)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # By their seeds: 8 / 2 with 1 degree of freedom, and 3 / 3 with 2. Of the two the samples
        # differ by 0, 6, -6, whose variance is 36: the 31 that are left are the sentences', of
        # which the fewer are 11.
        (
            measured(SEEDS[0], 21, np.array([1.0, 5.0, 1.0]), np.array([0.0, 1.0, -1.0])),
            measured(SEEDS[1], 11, np.array([1.0, 1.0, 2.0]), np.array([0.0, -1.0, 4.0])),
            two_sided(3.0 - -2.0, 36, (4 + 1 + 31) ** 2 / (4**2 / 1 + 1**2 / 2 + 31**2 / 10)),
        ),
        # Without sentences, the seeds alone.
        (measured(SEEDS[0], None, APART), measured(SEEDS[1], 11), two_sided(5.0, 36, OF_SEEDS)),
        # The samples differ less than the seeds alone would have them: no part is below 0.
        (measured(SEEDS[0], 11, APART / 6), measured(SEEDS[1], 11), two_sided(5.0, 1, OF_SEEDS)),
        # Of seeds that agree, the sentences alone; one sentence has one degree of freedom.
        (measured([4.0] * 2, 7, APART), measured([2.0] * 2, 6), two_sided(2.0, 36, 5)),
        (measured([4.0] * 2, 1, APART), measured([2.0] * 2, 1), two_sided(2.0, 36, 1)),
    ],
)
def test_p_of_difference_uses_the_known_parts_of_the_variance(
    first: SystemSample, second: SystemSample, expected: float
):
    assert p_of_difference(first, second) == pytest.approx(expected, rel=1e-12)
    assert p_of_difference(second, first) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_p_of_difference_ignores_rounding_on_any_scale(size: float):
    """On any scale: values in millionths may differ, and values in millions may be equal."""
    value, next_one = 0.3 * size, float(np.nextafter(0.3 * size, 1e9))
    same, equal = measured([value] * 2, None), measured([next_one] * 2, None)
    other = measured([value * 1.01] * 2, None)
    assert p_of_difference(same, equal) == 1.0
    assert p_of_difference(same, other) == p_of_difference(other, same) == 0.0
    scattered = measured([value, value * 1.001], None, size * np.array([0.0, 1e-3, -1e-3]))
    assert 0 < p_of_difference(scattered, other) < 1


def test_one_seed_is_not_compared():
    one = measured([1.0], 5, APART)
    assert difference_of_systems(one, measured([1.0, 2.0], 5), 0.95) is None
    assert difference_of_systems(measured([1.0, 2.0], 5), one, 0.95) is None


def test_six_seeds_are_compared_by_permutations_too():
    """Six seeds that lie apart by luck: Student's t would be surer than 462 halvings are."""
    ours = [2.0, 2.1, 2.2, 2.05, 2.15, 2.1]
    theirs = [1.0, 1.1, 1.2, 1.05, 1.15, 1.1]
    resampled = np.array([0.0, 0.01, -0.01])
    first, second = measured(ours, None, resampled), measured(theirs, None, resampled)
    student = contrast([first, second], [1, -1], 0.95)
    found = difference_of_systems(first, second, 0.95)
    assert student is not None
    assert found is not None
    assert student.p < found.p == pytest.approx(2 / math.comb(12, 6))
    assert found.low <= student.low
    assert found.high >= student.high
    fewer = difference_of_systems(measured(ours[:5], None, resampled), second, 0.95)
    assert fewer == contrast([measured(ours[:5], None, resampled), second], [1, -1], 0.95)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (([2.0, 2.0], None, STILL), ([1.0, 1.5], 11, APART)),
        (([2.0, 2.0], 11, APART), ([1.0, 1.0], None, STILL)),
        (([2.0, 3.0], None, STILL), ([1.0, 1.0], 11, APART)),
        (([2.0, 3.0], 11, APART), ([1.0, 1.0], 11, STILL)),
    ],
)
def test_p_of_difference_of_mixed_systems_is_a_probability(
    first: tuple[list[float], int | None, np.ndarray],
    second: tuple[list[float], int | None, np.ndarray],
):
    """Whether seeds differ, or sentences are known, for one of the systems alone."""
    one, other = measured(*first), measured(*second)
    p = p_of_difference(one, other)
    assert p is not None
    assert 0 < p < 1
    assert p == p_of_difference(other, one)


def test_p_of_difference_without_variance_of_seeds_is_that_of_the_normal_distribution():
    agreeing = measured([2.0, 2.0], None)
    by_sentences_alone = measured([1.0, 1.0], 11, APART)
    expected = 2 * float(norm.sf(1 / 6))
    assert p_of_difference(agreeing, by_sentences_alone) == pytest.approx(expected, rel=1e-12)


def drawn(values: list[float], seed: int, sentences: int | None = 50) -> SystemSample:
    random = np.random.default_rng(seed)
    by_sentences = float(np.mean(values)) + random.normal(0, 0.4, 200)
    return measured(values, sentences, by_sentences, random.normal(0, 0.3, 200))


@pytest.mark.parametrize("sentences", [50, None])
@pytest.mark.parametrize("shift", [0.0, 0.9, 3.0, 9.0])
def test_contrast_of_two_systems_agrees_with_the_p_of_their_difference(
    shift: float, sentences: int | None
) -> None:
    first = drawn([1 + shift, 2 + shift, 3.5 + shift], 1, sentences)
    second = drawn([1.0, 2.5, 2.0, 3.0], 2, sentences)
    p = p_of_difference(first, second)
    assert p is not None
    found = contrast([first, second], [1, -1], 0.95)
    assert found is not None
    assert found.p == pytest.approx(p)
    # At the confidence 1 - p, the interval ends at 0.
    edge = contrast([first, second], [1, -1], 1 - p)
    assert edge is not None
    assert min(abs(edge.low), abs(edge.high)) == pytest.approx(0, abs=1e-6)
    assert (found.low > 0 or found.high < 0) == (p < 0.05)


def test_contrast_of_four_systems_matches_hand_calculation() -> None:
    """Without sentences, and with the variance of the seeds alone."""
    pairs = [[1.0, 3.0], [2.0, 4.0], [5.0, 7.0], [0.0, 2.0]]
    spread = np.array([-1.0, 0.0, 1.0])  # variance 1, that of a mean of such two seeds
    samples = [
        measured(values, None, np.zeros(3), np.roll(spread, i)) for i, values in enumerate(pairs)
    ]
    weights = [1, -1, -1, 1]
    found = contrast(samples, weights, 0.95)
    assert found is not None
    assert found.value == 2 - 3 - 6 + 1
    resampled = sum(
        weight * sample.by_seeds for weight, sample in zip(weights, samples, strict=True)
    )
    error = float(np.var(resampled, ddof=1)) ** 0.5
    # Four variances of 1 with one degree each: 4^2 / (4 * 1)
    reach = float(t.ppf(0.975, 4)) * error
    assert (found.low, found.high) == pytest.approx((-6 - reach, -6 + reach))
    assert found.p == pytest.approx(two_sided(6, error**2, 4))


def test_contrast_with_a_single_seed_is_none() -> None:
    assert contrast([measured([1.0], 9), measured([1.0, 2.0], 9)], [1, -1], 0.95) is None


def test_contrast_of_equal_values_has_an_interval_without_width() -> None:
    still = [measured([2.0, 2.0], None), measured([2.0, 2.0], None)]
    found = contrast(still, [1, -1], 0.95)
    assert found is not None
    assert (found.value, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_holm_matches_hand_calculation() -> None:
    # 0.01 * 4; 0.04 * 2 = 0.08 behind 0.03 * 3 = 0.09, which it may not fall below; 0.9 * 1.
    assert holm([0.04, 0.01, 0.9, 0.03]) == pytest.approx([0.09, 0.04, 0.9, 0.09])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_gives_what_statsmodels_gives() -> None:
    from statsmodels.stats.multitest import multipletests

    draw = np.random.default_rng(0)
    for count in (1, 2, 5, 28):
        found = draw.random(count) ** 3
        found[count // 2] = found[0]  # a tie
        _, expected, _, _ = multipletests(found, method="holm")
        assert holm(found.tolist()) == pytest.approx(expected, rel=1e-15)


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
def test_letter_groups_match_hand_made_ones(
    count: int, apart: list[tuple[int, int]], expected: list[str]
) -> None:
    assert letter_groups(count, apart) == expected


@pytest.mark.parametrize("seed", range(20))
def test_letter_groups_share_a_letter_exactly_where_pairs_do_not_differ(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = int(draw.integers(2, 9))
    pairs = list(combinations(range(count), 2))
    apart = {pair for pair in pairs if draw.random() < 0.5}
    letters = letter_groups(count, apart)
    assert all(letters)
    for one, other in pairs:
        assert bool(set(letters[one]) & set(letters[other])) == ((one, other) not in apart)
