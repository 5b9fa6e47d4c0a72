"""Differences of means over seeds: Student's t, flips of signs, permutations, and the sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import stats

from attnlab.evaluation.differences import (
    Difference,
    ExactDifference,
    SentenceScatter,
    difference_from,
    independent_difference,
    paired_difference,
)

OURS = [3.1, 2.4, 5.0, 4.2, 3.3]
THEIRS = [2.0, 2.9, 1.4, 3.0, 2.2]


def differences(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    return [one - other for one, other in zip(ours, theirs, strict=True)]


def drawn(seeds: int, mean: float) -> list[float]:
    return np.random.default_rng(seeds).normal(mean, 1.0, seeds).tolist()


def test_few_pairs_have_students_interval() -> None:
    found = paired_difference(differences(OURS, THEIRS))
    expected = stats.ttest_rel(OURS, THEIRS)
    assert found is not None
    assert found.p_other_than(0.0) == pytest.approx(expected.pvalue)
    assert found.interval(0.95) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.method == "paired t, 5 seeds"


def test_few_seeds_of_two_groups_have_welchs_interval() -> None:
    found = independent_difference(OURS, THEIRS[:3])
    expected = stats.ttest_ind(OURS, THEIRS[:3], equal_var=False)
    assert found is not None
    assert found.p_other_than(0.0) == pytest.approx(expected.pvalue)
    assert found.interval(0.9) == pytest.approx(tuple(expected.confidence_interval(0.9)))
    assert found.method == "Welch's t, 5 and 3 seeds"


def test_six_pairs_are_compared_by_all_flips_of_signs() -> None:
    ours, theirs = drawn(7, 1.0), drawn(7, 0.0)[::-1]
    found = paired_difference(differences(ours, theirs))
    assert found is not None
    for side, p in (("greater", found.p_above(0.0)), ("less", found.p_below(0.0))):
        expected = stats.permutation_test(
            (ours, theirs), lambda one, other: np.mean(one - other),
            permutation_type="samples", n_resamples=np.inf, alternative=side,
        )  # fmt: skip
        assert p == pytest.approx(expected.pvalue)


def test_six_seeds_of_two_groups_are_compared_by_all_permutations() -> None:
    ours, theirs = drawn(6, 1.0), drawn(7, 0.0)
    found = independent_difference(ours, theirs)
    assert found is not None
    for side, p in (("greater", found.p_above(0.0)), ("less", found.p_below(0.0))):
        expected = stats.permutation_test(
            (ours, theirs), lambda one, other: np.mean(one) - np.mean(other),
            permutation_type="independent", n_resamples=np.inf, alternative=side,
        )  # fmt: skip
        assert p == pytest.approx(expected.pvalue)


@pytest.mark.parametrize(
    "compare",
    [
        lambda: paired_difference(drawn(8, 0.5)),
        lambda: independent_difference(drawn(6, 0.5), drawn(7, 0.0)),
        lambda: paired_difference(drawn(4, 0.5)),
        lambda: independent_difference(drawn(3, 0.5), drawn(5, 0.0)),
        lambda: paired_difference(drawn(8, 0.5), SentenceScatter(0.1, 300)),
    ],
)
def test_interval_has_the_bounds_that_neither_side_rejects(
    compare: Callable[[], Difference],
) -> None:
    found = compare()
    low, high = found.interval(0.95)
    inside, outside = 1e-6, -1e-6
    assert found.p_above(low + inside) > 0.025
    assert found.p_above(low + outside) <= 0.025 + 1e-6
    assert found.p_below(high - inside) > 0.025
    assert found.p_below(high - outside) <= 0.025 + 1e-6


def test_exact_test_of_five_pairs_could_not_go_below_a_sixteenth() -> None:
    five = ExactDifference(1.0, np.ones(2**5 - 1), "exact")
    assert five.p_other_than(0.0) == pytest.approx(1 / 16)
    assert five.interval(0.95) == (-math.inf, math.inf)


def test_many_seeds_draw_the_same_rearrangements_each_time() -> None:
    first, second = (independent_difference(drawn(15, 0.4), drawn(14, 0.0)) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.interval(0.95) == second.interval(0.95)
    student = stats.ttest_ind(drawn(15, 0.4), drawn(14, 0.0), equal_var=False)
    assert first.p_other_than(0.0) == pytest.approx(student.pvalue, abs=0.02)


def test_sentences_widen_the_interval_of_few_seeds() -> None:
    found = paired_difference([1.0, 1.2, 1.1], SentenceScatter(0.25, 500))
    assert found is not None
    seeds = 0.01 / 3
    degrees = (seeds + 0.25) ** 2 / (seeds**2 / 2 + 0.25**2 / 499)
    reach = stats.t.ppf(0.975, degrees) * math.sqrt(seeds + 0.25)
    assert found.interval(0.95) == pytest.approx((1.1 - reach, 1.1 + reach))
    assert found.method == "paired t, 3 seeds, 500 sentences"


def test_sentences_can_only_make_an_exact_test_less_certain() -> None:
    alone = paired_difference(drawn(8, 2.0))
    beside = paired_difference(drawn(8, 2.0), SentenceScatter(4.0, 100))
    assert alone is not None
    assert beside is not None
    assert beside.p_above(0.0) > alone.p_above(0.0)
    assert beside.interval(0.95)[0] < alone.interval(0.95)[0]


def test_seeds_without_scatter_say_nothing_of_their_certainty() -> None:
    assert paired_difference([0.5]) is None
    assert paired_difference([0.5, 0.5, 0.5]) is None
    assert independent_difference([1.0], [0.9, 0.8]) is None
    assert independent_difference([1.0, 1.0, 1.0], [0.9, 0.9, 0.9]) is None


def test_group_without_scatter_gets_that_of_the_other_one() -> None:
    found = independent_difference([1.0] * 4, [0.9, 0.8, 1.0, 0.7])
    assert found is not None
    variance = np.var([0.9, 0.8, 1.0, 0.7], ddof=1)
    reach = stats.t.ppf(0.975, 3) * math.sqrt(2 * variance / 4)
    assert found.interval(0.95) == pytest.approx((0.15 - reach, 0.15 + reach))


def test_labels_tell_two_groups_of_five_apart_that_do_not_scatter() -> None:
    found = independent_difference([1.0] * 5, [0.0] * 5)
    assert found is not None
    assert found.p_other_than(0.0) == pytest.approx(2 / math.comb(10, 5))


def test_alike_is_the_worse_of_two_one_sided_tests() -> None:
    found = difference_from([0.1, -0.1, 0.05, 0.0], 0.0)
    assert found is not None
    assert found.p_within(0.5) == max(found.p_above(-0.5), found.p_below(0.5))
    low, high = found.interval(0.9)
    assert found.p_within(max(-low, high)) == pytest.approx(0.05)
    assert found.p_outside(0.5) == 1.0
