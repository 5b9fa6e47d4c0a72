"""Shares of seeds: exact intervals, and tests of two shares."""

from __future__ import annotations

import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import confint_proportions_2indep

from attnlab.evaluation.shares import Share, independent_shares, paired_shares


def test_share_of_all_of_five_seeds_may_be_less_than_a_half() -> None:
    low, high = Share(5, 5).interval(0.95)
    assert low == pytest.approx(0.4782, abs=1e-4)
    assert high == 1.0


def test_share_is_tested_by_the_binomial_distribution() -> None:
    assert Share(9, 10).p_other_than(0.5) == pytest.approx(22 / 1024)


def test_independent_shares_have_newcombes_interval_and_fishers_p() -> None:
    found = independent_shares(Share(56, 70), Share(48, 80), 0.95)
    expected = confint_proportions_2indep(56, 70, 48, 80, method="newcomb")
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.p == pytest.approx(stats.fisher_exact([[56, 14], [48, 32]]).pvalue)


def test_paired_shares_are_tested_by_the_seeds_that_disagree() -> None:
    both, first_only, second_only = [(True, True)] * 36, [(True, False)] * 12, [(False, True)] * 2
    ours, theirs = zip(*both, *first_only, *second_only, strict=True)
    found = paired_shares(ours, theirs, 0.95)
    assert found.p == pytest.approx(mcnemar([[36, 12], [2, 0]], exact=True).pvalue)
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.0569, 0.3404), abs=1e-4)


def test_paired_shares_without_disagreement_are_not_certain() -> None:
    found = paired_shares([True] * 5, [True] * 5, 0.95)
    assert found.p == 1.0
    assert found.low < -0.3
    assert found.high > 0.3


@pytest.mark.parametrize("count", [0, 5])
def test_interval_of_paired_shares_holds_the_difference(count: int) -> None:
    ours = [True] * count + [False] * (5 - count)
    found = paired_shares(ours, [True, False, True, False, True], 0.95)
    assert -1.0 <= found.low < found.value < found.high <= 1.0
