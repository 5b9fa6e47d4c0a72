"""What comparisons of few seeds would have claimed, found out from the many seeds of a study.

A system against itself has no difference, so every claim of one is false. Two systems differ as
their means over all seeds do, so a comparison that has them the other way round misleads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt
from scipy import stats  # type: ignore[import-untyped]

COMPARISONS = 20_000  # drawn for each number of seeds
SEED = 1  # of the draws
LEVEL = 0.05  # of Welch's test
FEWEST_FOR_WELCH = 2


@dataclass(frozen=True)
class FewSeeds:
    """
    measure: that is compared.
    seeds: of each of the two sides of a comparison.
    differences: that a reader may take for a result, without a test.
    """

    measure: str
    seeds: Annotated[list[PositiveInt], Field(min_length=1)]
    differences: Annotated[list[PositiveFloat], Field(min_length=1)]
    __pydantic_config__: ClassVar = {"extra": "forbid"}


@dataclass(frozen=True)
class Claims:
    """The shares of comparisons that claim something.

    apart: of the given differences or more, in either direction.
    reversed: with the worse system ahead; None of a system against itself.
    significant: of a p of Welch's test below 0.05, in either direction; None of single seeds.
    """

    apart: list[float]
    reversed: float | None
    significant: float | None


def claims_of_itself(values: NDArray[np.float64], seeds: int, few: FewSeeds) -> Claims:
    """Comparisons of a system with itself, of seeds that no two sides share.

    values: of all its seeds, at least twice as many as a side has.
    """
    drawn = _draws(len(values), 2 * seeds)
    ours, theirs = values[drawn[:, :seeds]], values[drawn[:, seeds:]]
    return Claims(
        apart=_shares_apart(ours, theirs, few.differences),
        reversed=None,
        significant=_share_significant(ours, theirs),
    )


def claims_of_two(
    better: NDArray[np.float64], worse: NDArray[np.float64], seeds: int, few: FewSeeds
) -> Claims:
    """Comparisons of two systems, of which one is better over all seeds.

    better, worse: their values, negated where less is better.
    """
    ours = better[_draws(len(better), seeds)]
    theirs = worse[_draws(len(worse), seeds, stream=1)]
    is_reversed = ours.mean(axis=1) < theirs.mean(axis=1)
    return Claims(
        apart=_shares_apart(ours, theirs, few.differences),
        reversed=float(is_reversed.mean()),
        significant=_share_significant(ours, theirs),
    )


def _draws(among: int, size: int, stream: int = 0) -> NDArray[np.intp]:
    """(COMPARISONS, size): the places of different seeds; streams are independent."""
    random = np.random.default_rng([SEED, stream])
    return random.random((COMPARISONS, among)).argsort(axis=1)[:, :size]


def _shares_apart(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], differences: list[float]
) -> list[float]:
    between = np.abs(ours.mean(axis=1) - theirs.mean(axis=1))
    rounding = 1e-9
    shares = []
    for limit in differences:
        is_apart = between >= limit - rounding
        shares.append(float(is_apart.mean()))
    return shares


def _share_significant(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float | None:
    """By Welch's test, two-sided; None of single seeds. Where nothing scatters, nothing is."""
    seeds = ours.shape[1]
    if seeds < FEWEST_FOR_WELCH:
        return None
    one = ours.mean(axis=1), ours.std(axis=1, ddof=1), seeds
    other = theirs.mean(axis=1), theirs.std(axis=1, ddof=1), seeds
    with np.errstate(invalid="ignore", divide="ignore"):
        p = stats.ttest_ind_from_stats(*one, *other, equal_var=False).pvalue
    return float((p < LEVEL).mean())  # a p of nan is not below


@dataclass(frozen=True)
class Scatter:
    """The standard deviation over seeds, with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def scatter_of(values: NDArray[np.float64]) -> Scatter | None:
    """None of fewer than two values. The interval takes the values for normal (chi-squared)."""
    degrees = len(values) - 1
    if degrees < 1:
        return None
    deviation = float(values.std(ddof=1))
    low, high = degrees / stats.chi2.ppf([0.975, 0.025], degrees)
    return Scatter(deviation, deviation * low**0.5, deviation * high**0.5)
