"""Looks at the seeds while a study runs: the level over all of them, and when to give up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from attnlab.evaluation.looks import chance_of_the_end, levels_of_looks, spent

LOOKS = (5, 10, 15, 20)


def test_published_bounds_of_four_equal_looks() -> None:
    """Of O'Brien and Fleming's kind, two-sided at 0.05: 4.333, 2.963, 2.359, 2.014."""
    bounds = [stats.norm.isf(level / 2) for level in levels_of_looks(LOOKS, 0.05)]
    assert bounds == pytest.approx([4.333, 2.963, 2.359, 2.014], abs=2e-3)


def test_one_look_has_the_whole_level() -> None:
    assert levels_of_looks((5,), 0.05) == pytest.approx((0.05,))
    assert spent(1.0, 0.05) == pytest.approx(0.05)


def test_looks_together_err_at_the_level() -> None:
    """Of walks without a drift, as of equal systems with very many seeds."""
    random = np.random.default_rng(1)
    walks = random.normal(size=(200_000, 4)).cumsum(axis=1) / np.sqrt([1, 2, 3, 4])
    levels = np.array(levels_of_looks(LOOKS, 0.05))
    crossed = (2 * stats.norm.sf(abs(walks)) < levels).any(axis=1).mean()
    assert crossed == pytest.approx(0.05, abs=4 * (0.05 * 0.95 / 200_000) ** 0.5)
    at_each = (2 * stats.norm.sf(abs(walks)) < 0.05).any(axis=1).mean()
    assert at_each > 0.12


@pytest.mark.parametrize(("p", "futile"), [(0.9, True), (0.5, True), (0.01, False)])
def test_chance_of_the_end_falls_with_p(p: float, futile: bool) -> None:
    assert (chance_of_the_end(p, 10, LOOKS, 0.05) < 0.1) is futile


def test_chance_of_the_end_is_the_share_of_walks_that_end_beyond_the_bound() -> None:
    p, share = 0.1, 0.5
    value = stats.norm.isf(p / 2) * share**0.5
    random = np.random.default_rng(2)
    ends = value + random.normal(value / share * (1 - share), (1 - share) ** 0.5, 100_000)
    bound = stats.norm.isf(levels_of_looks(LOOKS, 0.05)[-1] / 2)
    assert chance_of_the_end(p, 10, LOOKS, 0.05) == pytest.approx((ends > bound).mean(), abs=0.006)


def test_nothing_can_still_come_after_the_last_look() -> None:
    assert chance_of_the_end(0.06, 20, LOOKS, 0.05) == 0.0
