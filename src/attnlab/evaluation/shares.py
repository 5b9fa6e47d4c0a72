"""Shares of seeds, such as those that learnt: intervals and tests of counts.

k of n seeds is a binomial count. With few seeds a share is known badly: 5 of 5 has a lower bound of
0.48.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats  # type: ignore[import-untyped]


@dataclass(frozen=True)
class Share:
    """k of n."""

    count: int
    of: int

    @property
    def value(self) -> float:
        return self.count / self.of

    def interval(self, confidence: float) -> tuple[float, float]:
        """Clopper and Pearson's exact interval.

        Clopper and Pearson 1934, "The use of confidence or fiducial limits illustrated in the case
        of the binomial", Biometrika 26.
        """
        found = stats.binomtest(self.count, self.of).proportion_ci(confidence, method="exact")
        return float(found.low), float(found.high)

    def p_other_than(self, share: float) -> float:
        """The two-sided p of the hypothesis that the true share is this one."""
        return float(stats.binomtest(self.count, self.of, share).pvalue)


@dataclass(frozen=True)
class ShareDifference:
    """The difference of two shares. low, high: of its interval. p: that there is none."""

    value: float
    low: float
    high: float
    p: float
    method: str


def independent_shares(ours: Share, theirs: Share, confidence: float) -> ShareDifference:
    """Fisher's exact test, with Newcombe's interval.

    Newcombe 1998, "Interval estimation for the difference between independent proportions:
    comparison of eleven methods", Statistics in Medicine 17, method 10.
    """
    table = [[ours.count, ours.of - ours.count], [theirs.count, theirs.of - theirs.count]]
    p = float(stats.fisher_exact(table).pvalue)
    low, high = _newcombe(ours, theirs, confidence, correlation=0.0)
    return ShareDifference(ours.value - theirs.value, low, high, p, "Fisher's exact test")


def paired_shares(
    ours: Sequence[bool], theirs: Sequence[bool], confidence: float
) -> ShareDifference:
    """McNemar's exact test of the same seeds with and without a change, with Newcombe's interval.

    McNemar 1947, "Note on the sampling error of the difference between correlated proportions or
    percentages", Psychometrika 12; Newcombe 1998, "Improved confidence intervals for the difference
    between binomial proportions based on paired data", Statistics in Medicine 17, method 10.

    ours, theirs: of each seed, in the same order.
    """
    pairs = Counter(zip(ours, theirs, strict=True))
    seeds = len(ours)
    first_only, second_only = pairs[True, False], pairs[False, True]
    one, other = Share(sum(ours), seeds), Share(sum(theirs), seeds)
    disagree = first_only + second_only
    p = Share(first_only, disagree).p_other_than(0.5) if disagree else 1.0
    correlation = _correlation(pairs[True, True], first_only, second_only, pairs[False, False])
    low, high = _newcombe(one, other, confidence, correlation)
    return ShareDifference(one.value - other.value, low, high, p, "McNemar's exact test")


def _correlation(both: int, first_only: int, second_only: int, neither: int) -> float:
    """Newcombe's φ of paired counts, which a positive correlation enters with a correction."""
    margins = (
        (both + first_only)
        * (second_only + neither)
        * (both + second_only)
        * (first_only + neither)
    )
    if margins == 0:
        return 0.0
    product = both * neither - first_only * second_only
    if product > 0:
        seeds = both + first_only + second_only + neither
        return max(0.0, product - seeds / 2) / math.sqrt(margins)
    return product / math.sqrt(margins)


def _newcombe(
    one: Share, other: Share, confidence: float, correlation: float
) -> tuple[float, float]:
    """The interval of a difference of shares, by squares and sums of two Wilson intervals."""
    (one_low, one_high), (other_low, other_high) = (
        _wilson(share, confidence) for share in (one, other)
    )
    value = one.value - other.value
    below = _hypotenuse(one.value - one_low, other_high - other.value, correlation)
    above = _hypotenuse(one_high - one.value, other.value - other_low, correlation)
    return value - below, value + above


def _hypotenuse(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(0.0, one**2 - 2 * correlation * one * other + other**2))


def _wilson(share: Share, confidence: float) -> tuple[float, float]:
    found = stats.binomtest(share.count, share.of).proportion_ci(confidence, method="wilson")
    return float(found.low), float(found.high)
