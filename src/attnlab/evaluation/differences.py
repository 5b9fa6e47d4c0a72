"""The difference of two means over a few seeds: its interval, and how sure its side is.

Below six seeds it is compared with Student's t, which takes the means for normal. From six seeds on
the seeds themselves are rearranged, which takes nothing for normal: of pairs the signs are flipped
(Fisher 1935, The Design of Experiments, section 21), of two groups the labels are permuted (Pitman
1937, "Significance tests which may be applied to samples from any populations", Supplement to the
Journal of the Royal Statistical Society 4). What the choice of the test sentences adds is known
from resampling them, and has Student's t at any number of seeds; where it is known beside an exact
test, the less certain of the two decides.

Values are paired where both come from the same trained models, such as two measures of explanation
of one model: then their difference is taken seed by seed.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb, ndtri, stdtr, stdtrit  # type: ignore[import-untyped]

FEWEST_SEEDS_EXACT = 6
# So many rearrangements are listed; of more as many are drawn, the same ones each time.
_MOST_LISTED = 2**15
_CLEAR = 0.05  # what two halves of the seeds may have for p, to be told apart without a scatter
_SEED_OF_DRAWS = 20261128


@dataclass(frozen=True)
class SentenceScatter:
    """How much a difference of means scatters by the choice of the test sentences.

    variance: of the difference, where both are measured on the same samples of the sentences.
    sentences: how many the test has.
    """

    variance: float
    sentences: int


class Difference(ABC):
    """A difference of two means, or of a mean and a number.

    value: the difference.
    method: how its certainty is measured, in words.
    """

    value: float
    method: str

    @abstractmethod
    def p_above(self, bound: float) -> float:
        """p of the hypothesis that the true difference is at most `bound`, one-sided."""

    @abstractmethod
    def p_below(self, bound: float) -> float:
        """p of the hypothesis that the true difference is at least `bound`, one-sided."""

    @abstractmethod
    def interval(self, confidence: float) -> tuple[float, float]:
        """The bounds that neither side rejects at half of 1 - confidence."""

    def p_within(self, bound: float) -> float:
        """p of the hypothesis that the true difference is `bound` away from 0, or more.

        Two one-sided tests (Schuirmann 1987, "A comparison of the two one-sided tests procedure and
        the power approach", Journal of Pharmacokinetics and Biopharmaceutics 15).
        """
        return max(self.p_above(-bound), self.p_below(bound))

    def p_outside(self, bound: float) -> float:
        """p of the hypothesis that the true difference is within `bound`, two-sided."""
        return min(1.0, 2 * min(self.p_above(bound), self.p_below(-bound)))

    def p_other_than(self, bound: float) -> float:
        """p of the hypothesis that the true difference is `bound`, two-sided."""
        return min(1.0, 2 * min(self.p_above(bound), self.p_below(bound)))


class StudentDifference(Difference):
    """A difference compared with Student's t.

    Args:
        value: of the means.
        parts: (variance, degrees of freedom) of each part of its variance; the degrees of the sum
            are Satterthwaite's (1946, as in Welch's test).
    """

    def __init__(self, value: float, parts: Sequence[tuple[float, float]], method: str) -> None:
        self.value = value
        self.method = method
        self._error = math.sqrt(sum(variance for variance, _ in parts))
        self._degrees = degrees_of_freedom(parts)

    def p_above(self, bound: float) -> float:
        return float(stdtr(self._degrees, (bound - self.value) / self._error))

    def p_below(self, bound: float) -> float:
        return float(stdtr(self._degrees, (self.value - bound) / self._error))

    def interval(self, confidence: float) -> tuple[float, float]:
        reach = student_quantile((1 + confidence) / 2, self._degrees) * self._error
        return self.value - reach, self.value + reach


class ExactDifference(Difference):
    """A difference compared with what it is after each rearrangement of the seeds.

    Each rearrangement turns at one bound: with true differences below it the rearranged difference
    is the greater one, above it the smaller one. So the share of the turns at most at a bound is
    the p of that bound, and the turns that leave out a tail on either side are the interval's ends
    (Hartigan 1969, "Using subsample values as typical values", Journal of the American Statistical
    Association 64, for signs).

    Args:
        turns: the bounds, of all rearrangements but the one that changes nothing.
    """

    def __init__(self, value: float, turns: NDArray[np.float64], method: str) -> None:
        self.value = value
        self.method = method
        self._turns = np.sort(turns)

    def p_above(self, bound: float) -> float:
        return self._share(np.searchsorted(self._turns, bound + self._rounding(bound), "right"))

    def p_below(self, bound: float) -> float:
        before = np.searchsorted(self._turns, bound - self._rounding(bound), "left")
        return self._share(len(self._turns) - before)

    def interval(self, confidence: float) -> tuple[float, float]:
        tail = (1 - confidence) / 2
        left_out = math.floor(tail * (len(self._turns) + 1) + 1e-9)
        if left_out < 1:
            return -math.inf, math.inf
        return float(self._turns[left_out - 1]), float(self._turns[-left_out])

    def _share(self, turned: np.int64 | int) -> float:
        """What changes nothing counts as well."""
        return float((turned + 1) / (len(self._turns) + 1))

    def _rounding(self, bound: float) -> float:
        return 1e-12 * max(abs(bound), abs(self.value), abs(self._turns[0]), abs(self._turns[-1]))


class LessCertainDifference(Difference):
    """The less certain of two measurements of one difference."""

    def __init__(self, one: Difference, other: Difference) -> None:
        self._both = (one, other)
        self.value = one.value
        self.method = f"{one.method}, and {other.method}"

    def p_above(self, bound: float) -> float:
        return max(each.p_above(bound) for each in self._both)

    def p_below(self, bound: float) -> float:
        return max(each.p_below(bound) for each in self._both)

    def interval(self, confidence: float) -> tuple[float, float]:
        ends = [each.interval(confidence) for each in self._both]
        return min(low for low, _ in ends), max(high for _, high in ends)


def paired_difference(
    differences: Sequence[float], sentences: SentenceScatter | None = None, test: str = "paired t"
) -> Difference | None:
    """The mean of differences that were taken seed by seed.

    test: the name of Student's test for few seeds.

    None where its certainty cannot be measured: of one seed, and of fewer than six whose
    differences are all alike.
    """
    found = np.asarray(differences, dtype=np.float64)
    seeds = len(found)
    student = None
    if seeds > 1 and scatter(found):
        student = _student(
            float(found.mean()),
            [(float(found.var(ddof=1)) / seeds, seeds - 1)],
            f"{test}, {seeds} seeds",
            sentences,
        )
    if seeds < FEWEST_SEEDS_EXACT:
        return student

    method = f"exact, signs of {seeds} seeds"
    exact = ExactDifference(float(found.mean()), _turns_of_signs(found), method)
    return _less_certain(exact, student, sentences)


def independent_difference(
    ours: Sequence[float], theirs: Sequence[float], sentences: SentenceScatter | None = None
) -> Difference | None:
    """The difference of two means, each over seeds of its own.

    A group of equal values does not show its scatter; it gets that of the other group. None where
    the certainty cannot be measured: of one seed, and of fewer than six where neither group
    scatters, unless the seeds themselves are enough to tell two groups apart.
    """
    one, other = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    fewest = min(len(one), len(other))
    value = float(one.mean() - other.mean())
    student = None
    if fewest > 1 and (scatter(one) or scatter(other)):
        method = f"Welch's t, {_counts(one, other)} seeds"
        student = _student(value, _parts_of_seeds(one, other), method, sentences)
    if student is not None and fewest < FEWEST_SEEDS_EXACT:
        return student

    # Without any scatter the labels alone may tell the groups apart: of five and five seeds one
    # of 126 halvings is as clear.
    if fewest < FEWEST_SEEDS_EXACT and 2 / comb(len(one) + len(other), len(one)) > _CLEAR:
        return None
    method = f"exact, permutations of {_counts(one, other)} seeds"
    exact = ExactDifference(value, _turns_of_labels(one, other), method)
    return _less_certain(exact, student, sentences)


def difference_from(
    values: Sequence[float], number: float, sentences: SentenceScatter | None = None
) -> Difference | None:
    """A mean over seeds less a number, as `paired_difference`."""
    return paired_difference([value - number for value in values], sentences, "one-sample t")


def scatter(values: NDArray[np.float64]) -> bool:
    """Whether values differ by more than rounding."""
    return bool(np.ptp(values) > 1e-12 * np.abs(values).max())


def _counts(one: NDArray[np.float64], other: NDArray[np.float64]) -> str:
    """`5` or `5 and 3`."""
    if len(one) == len(other):
        return f"{len(one)}"
    return f"{len(one)} and {len(other)}"


def _less_certain(
    exact: Difference, student: Difference | None, sentences: SentenceScatter | None
) -> Difference:
    """The exact test alone where no scatter of the sentences is known beside that of the seeds."""
    if student is None or sentences is None:
        return exact
    return LessCertainDifference(exact, student)


def _student(
    value: float,
    of_seeds: Sequence[tuple[float, float]],
    method: str,
    sentences: SentenceScatter | None,
) -> Difference:
    """Student's t over the seeds, and over the sentences where their scatter is known."""
    if sentences is None:
        return StudentDifference(value, of_seeds, method)
    of_sentences = (sentences.variance, max(1, sentences.sentences - 1))
    return StudentDifference(
        value, [*of_seeds, of_sentences], f"{method}, {sentences.sentences:,} sentences"
    )


def _parts_of_seeds(
    one: NDArray[np.float64], other: NDArray[np.float64]
) -> list[tuple[float, float]]:
    """(variance of the mean, degrees of freedom) of both groups."""
    if scatter(one) and scatter(other):
        return [(float(group.var(ddof=1)) / len(group), len(group) - 1) for group in (one, other)]
    shown = one if scatter(one) else other
    variance = float(shown.var(ddof=1))
    return [(variance / len(one) + variance / len(other), len(shown) - 1)]


def _turns_of_signs(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """The bounds at which flips of signs turn: the means of all subsets of the differences.

    The sum of d - bound rises by flipping a subset where its own sum is below 0, so where its mean
    is below the bound.
    """
    means: NDArray[np.float64] = _subsets(len(differences)) @ differences
    return means


@cache
def _subsets(seeds: int) -> NDArray[np.float64]:
    """(M, n): a row for each subset that is not empty, or of a sample; it takes its mean."""
    if 2**seeds <= _MOST_LISTED:
        numbers = np.arange(1, 2**seeds)
        chosen = (numbers[:, None] >> np.arange(seeds)) & 1
    else:
        random = np.random.default_rng(_SEED_OF_DRAWS)
        chosen = random.integers(2, size=(_MOST_LISTED, seeds))
        chosen = chosen[chosen.any(axis=1)]
    weights: NDArray[np.float64] = chosen / chosen.sum(axis=1, keepdims=True)
    return weights


def _turns_of_labels(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The bounds at which exchanges of seeds between two groups turn.

    Exchanging as many seeds of one group for those of the other raises the difference of the means
    (less the bound) where the mean of those that leave is below that of those that come.
    """
    leave, come = _exchanges(len(ours), len(theirs))
    turns: NDArray[np.float64] = leave @ ours - come @ theirs
    return turns


@cache
def _exchanges(ours: int, theirs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(M, n) and (M, m): a row for each exchange of seeds, or of a sample of them.

    They take the mean of the seeds that leave the first group, and of those that come.
    """
    seeds = ours + theirs
    if comb(seeds, ours) <= _MOST_LISTED:
        places = np.array(list(itertools.combinations(range(seeds), ours)))
    else:
        random = np.random.default_rng(_SEED_OF_DRAWS)
        places = random.random((_MOST_LISTED, seeds)).argsort(axis=1)[:, :ours]
    in_ours = np.zeros((len(places), seeds), dtype=bool)
    np.put_along_axis(in_ours, places, values=True, axis=1)

    leave, come = ~in_ours[:, :ours], in_ours[:, ours:]
    changes = come.any(axis=1)
    leave, come = leave[changes], come[changes]
    exchanged = come.sum(axis=1, keepdims=True)
    return leave / exchanged, come / exchanged


def student_quantile(share: float, degrees: float) -> float:
    """The quantile of Student's t; with infinitely many degrees that of the normal distribution."""
    return float(ndtri(share) if math.isinf(degrees) else stdtrit(degrees, share))


def degrees_of_freedom(parts: Sequence[tuple[float, float]]) -> float:
    """Satterthwaite's degrees of freedom of a sum of variances, each with its own degrees.

    parts: (variance, degrees of freedom). Without any variance, Student's t is the normal
        distribution: infinitely many.
    """
    total = sum(variance for variance, _ in parts)
    if total == 0:
        return math.inf
    return total**2 / sum(variance**2 / degrees for variance, degrees in parts)
