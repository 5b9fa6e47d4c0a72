"""The p of a difference between samples small enough to work it out: Welch's t, with the sentences as one more part."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from attnlab.evaluation.system_difference import p_of_difference
from attnlab.evaluation.two_level_bootstrap import SystemSample

STILL = np.zeros(3)


def measured(
    values: list[float], sentences: int | None, by_sentences: np.ndarray = STILL, by_seeds: np.ndarray = STILL
) -> SystemSample:
    return SystemSample(np.array(values), by_sentences, by_seeds, sentences)


def two_sided(difference: float, variance: float, degrees: float) -> float:
    return 2 * float(t.sf(difference / variance**0.5, degrees))


def test_seeds_and_sentences_are_parts_of_one_variance():
    # By their seeds: 8 / 2 with 1 degree of freedom, and 3 / 3 with 2. Of the two the samples differ by 0, 6, -6, whose
    # variance is 36: the 31 that are left are the sentences', of which the fewer are 11.
    first = measured([1.0, 5.0], 21, np.array([1.0, 5.0, 1.0]), np.array([0.0, 1.0, -1.0]))
    second = measured([-3.0, -3.0, 0.0], 11, np.array([1.0, 1.0, 2.0]), np.array([0.0, -1.0, 4.0]))
    degrees = (4 + 1 + 31) ** 2 / (4**2 / 1 + 1**2 / 2 + 31**2 / 10)
    expected = two_sided(3.0 - -2.0, 36, degrees)
    assert p_of_difference(first, second) == pytest.approx(expected, rel=1e-12)
    assert p_of_difference(second, first) == pytest.approx(expected, rel=1e-12)


def test_without_sentences_the_seeds_are_all_parts():
    apart = np.array([0.0, 6.0, -6.0])
    first, second = measured([1.0, 5.0], None, apart), measured([-3.0, -3.0, 0.0], 11)
    degrees = (4 + 1) ** 2 / (4**2 / 1 + 1**2 / 2)
    assert p_of_difference(first, second) == pytest.approx(two_sided(5.0, 36, degrees), rel=1e-12)
    assert p_of_difference(second, first) == pytest.approx(two_sided(5.0, 36, degrees), rel=1e-12)


def test_one_seed_each_leaves_the_sentences():
    apart = np.array([0.0, 3.0, -3.0])
    found = p_of_difference(measured([4.0], 7, apart), measured([2.0], 6))
    assert found == pytest.approx(two_sided(2.0, 9, 5), rel=1e-12)


def test_a_lone_sentence_still_has_a_degree_of_freedom():
    apart = np.array([0.0, 3.0, -3.0])
    found = p_of_difference(measured([4.0], 1, apart), measured([2.0], 1))
    assert found == pytest.approx(two_sided(2.0, 9, 1), rel=1e-12)


@pytest.mark.parametrize("lone_first", [True, False])
def test_a_lone_seed_is_taken_to_scatter_as_the_others_do(lone_first: bool):
    # The three vary by 3: the mean of three by 3 / 3, which the samples show (12 in all), and one alone by 3 more,
    # which they do not. What is left of 15 is the sentences'.
    lone = measured([5.0], 9, np.array([0.0, 12.0**0.5, -(12.0**0.5)]))
    three = measured([-3.0, -3.0, 0.0], 9)
    degrees = 15**2 / (4**2 / 2 + 11**2 / 8)
    pair = (lone, three) if lone_first else (three, lone)
    assert p_of_difference(*pair) == pytest.approx(two_sided(7.0, 15, degrees), rel=1e-12)


def test_sentences_add_nothing_where_the_seeds_explain_it_all():
    # The samples differ less than the seeds alone would have them: no part is below 0.
    apart = np.array([0.0, 1.0, -1.0])
    first, second = measured([1.0, 5.0], 11, apart), measured([-3.0, -3.0, 0.0], 11)
    degrees = (4 + 1) ** 2 / (4**2 / 1 + 1**2 / 2)
    assert p_of_difference(first, second) == pytest.approx(two_sided(5.0, 1, degrees), rel=1e-12)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_rounding_is_no_scatter_and_no_difference(size: float):
    """On any scale: values in millionths may differ, and values in millions may be equal."""
    value, next_one = 0.3 * size, float(np.nextafter(0.3 * size, 1e9))
    same, equal = measured([value] * 2, None), measured([next_one] * 2, None)
    other = measured([value * 1.01] * 2, None)
    assert p_of_difference(same, equal) == 1.0
    assert p_of_difference(same, other) == p_of_difference(other, same) == 0.0
    scattered = measured([value, value * 1.001], None, size * np.array([0.0, 1e-3, -1e-3]))
    assert 0 < p_of_difference(scattered, other) < 1


def test_the_larger_of_two_systems_sets_the_scale():
    """Against a system in millions, the scatter of one near zero is nothing."""
    small, large = measured([0.0, 1e-9], None, np.array([0.0, 1e-9, -1e-9])), measured([-1e6] * 2, None)
    assert p_of_difference(small, large) == p_of_difference(large, small) == 0.0


def test_nothing_to_draw_again_has_no_p():
    one = measured([1.0], None)
    assert p_of_difference(one, one) is None
    assert p_of_difference(one, measured([1.0], 5)) is None
    assert p_of_difference(measured([1.0, 2.0], None, np.array([0.0, 1.0, 2.0])), one) is not None
