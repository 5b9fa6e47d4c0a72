"""Expectations of a study, and published figures, held against what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from attnlab.evaluation.differences import Difference, difference_from
from attnlab.evaluation.measures import Measure
from attnlab.evaluation.shares import Share, ShareDifference, independent_shares, paired_shares
from attnlab.studies.measured_rows import MeasuredRows
from attnlab.tasks.saved import measure_named

Outcome = Literal["holds", "does not hold", "undecided"]
Reached = Literal["yes", "no", "undecided"]
CONFIDENCE = 0.95
THRESHOLD = 0.05
_NO_OTHER_KEYS = {"extra": "forbid"}  # for pydantic, which reads these classes from a study
# Measures of expectations about shares of the seeds
LEARNT = "learnt"  # of all: those that learnt
FORETOLD = "foretold"  # of those that failed: those that the study's rule foretold to fail
SPARED = "spared"  # of those that learnt: those that the rule did not foretell to fail
RESCUED = "rescued"  # of those that fail with `less`: those that learn with `more`
SHARES = (LEARNT, FORETOLD, SPARED, RESCUED)


@dataclass(frozen=True)
class Finding:
    """What was found of an expectation.

    value: the difference; None where no seed learnt.
    low, high: its interval: of 95 %, or the one of 90 % that two one-sided tests ask for.
    confidence: of the interval.
    p_holds: of the hypothesis that the expectation does not hold; None where it was not tested.
    p_fails: of the hypothesis that it holds.
    method: how the certainty was measured, or why it was not.
    """

    value: float | None
    low: float | None
    high: float | None
    confidence: float
    p_holds: float | None
    p_fails: float | None
    method: str

    @property
    def p(self) -> float | None:
        """Of the side that the difference is on."""
        if self.p_holds is None or self.p_fails is None:
            return None
        return min(self.p_holds, self.p_fails)

    def outcome(self, p: float | None = None, level: float = THRESHOLD) -> Outcome:
        """p: after a correction for the tests of a family; its own without one.

        level: that p is compared with.
        """
        if self.p_holds is None or self.p_fails is None:
            return "undecided"
        compared = min(self.p_holds, self.p_fails) if p is None else p
        if compared >= level:
            return "undecided"
        return "holds" if self.p_holds <= self.p_fails else "does not hold"

    def shown(self, measure: Measure) -> str:
        """`+31.2 (+30.8 to +31.6)`."""
        mean = measure.shown(self.value, signed=True)
        if self.low is None or self.high is None:
            return mean
        ends = f"{_bound(self.low, measure)} to {_bound(self.high, measure)}"
        if self.confidence == CONFIDENCE:
            return f"{mean} ({ends})"
        return f"{mean} ({self.confidence:.0%}: {ends})"


def finding_of_p(p_holds: float | None, p_fails: float | None) -> Finding:
    """A finding of which only the p values are at hand."""
    return Finding(None, None, None, CONFIDENCE, p_holds, p_fails, "")


def _bound(value: float, measure: Measure) -> str:
    if math.isinf(value):
        return "-∞" if value < 0 else "+∞"
    return measure.shown(value, signed=True)


def _untested(value: float | None, reason: str) -> Finding:
    return Finding(value, None, None, CONFIDENCE, None, None, reason)


@dataclass(frozen=True)
class Expectation:
    """One mean is greater than another, or two are alike.

    says: the expectation in words.
    measure: what is compared; one of `SHARES` is a share of the seeds. `foretold` and `spared` are
        of `more`, and `less` is a number; `rescued` is of both.
    more, less: systems, `dot`, or systems at a place of the axis, `dot @ 20`. `less` may be a
        number.
    by: how much greater `more` is at least; of `rescued`, what the share is above.
    within: the two differ by less than this; `by` is not used then.
    primary: whether it decides the study; the others have intervals only. None where nothing is
        said of it: a single expectation decides then.
    same_seeds: of shares: seeds of the same number are the same one with and without a change.
    scatter: what is compared is how far the seeds of each system lie from its median, not their
        means.
    """

    says: str
    measure: str
    more: str
    less: str | float
    by: float = 0.0
    within: float | None = None
    primary: bool | None = None
    same_seeds: bool = False
    scatter: bool = False
    __pydantic_config__: ClassVar = _NO_OTHER_KEYS

    def __post_init__(self) -> None:
        is_of_two = isinstance(self.less, str)
        if self.measure in (FORETOLD, SPARED) and is_of_two:
            raise ValueError(f"less must be a number for {self.measure}, got {self.less!r}")
        if self.measure == RESCUED and not is_of_two:
            raise ValueError(f"less must be a system for {RESCUED}, got {self.less}")
        if self.scatter and (self.measure in SHARES or not is_of_two):
            raise ValueError(
                "scatter compares the seeds of two systems: less must be one, and measure must be "
                f"none of {', '.join(SHARES)}; got {self.less!r} and {self.measure!r}"
            )

    @property
    def needs_learnt(self) -> bool:
        """Whether seeds that fail would hide: means alike, of a measure with a best value."""
        measure = measure_named(self.measure)
        best = measure.least if measure.sign < 0 else measure.most
        is_bounded = bool(measure.better) and math.isfinite(best)
        return self.within is not None and is_bounded and not self.scatter

    def finding(self, measured: MeasuredRows) -> Finding:
        """What the seeds say of it."""
        if self.measure == LEARNT and isinstance(self.less, str):
            return self._finding_of_two_shares(measured, self.less)
        if self.measure in SHARES:
            return self._finding_of_share(self._share(measured))
        if self.scatter:
            return self._finding_of_scatters(measured)

        value = measured.value_of_difference(self.more, self.less, self.measure)
        difference = measured.difference(self.more, self.less, self.measure)
        if value is None:
            return _untested(None, "not tested: no seed learnt")
        if difference is None:
            return _untested(value, "not tested: too few seeds, or none scatters")
        # Seeds that all meet a bound of the measure do not show how often one would miss it.
        is_at_bound = not measured.scatters(self.more, self.less, self.measure)
        if self.within is not None and is_at_bound:
            return _untested(value, "not tested: nothing scatters")
        return self._tested(value, difference)

    def _finding_of_scatters(self, measured: MeasuredRows) -> Finding:
        assert isinstance(self.less, str)
        difference = measured.difference_of_scatters(self.more, self.less, self.measure)
        if difference is None:
            return _untested(None, "not tested: too few seeds, or none scatters")
        return self._tested(difference.value, difference)

    def _tested(self, value: float, difference: Difference) -> Finding:
        """Against `by`, or by two one-sided tests against `within`."""
        if self.within is None:
            low, high = difference.interval(CONFIDENCE)
            holds, fails = difference.p_above(self.by), difference.p_below(self.by)
            doubled = (min(1.0, 2 * holds), min(1.0, 2 * fails))
            return Finding(value, low, high, CONFIDENCE, *doubled, difference.method)

        confidence = 1 - 2 * THRESHOLD
        low, high = difference.interval(confidence)
        holds, fails = difference.p_within(self.within), difference.p_outside(self.within)
        return Finding(value, low, high, confidence, holds, fails, difference.method)

    def _share(self, measured: MeasuredRows) -> Share:
        if self.measure == FORETOLD:
            return measured.foretold(self.more).failures
        if self.measure == SPARED:
            return measured.foretold(self.more).spared
        if isinstance(self.less, str):
            return measured.share_rescued(self.more, failing=self.less)
        return measured.share_that_learnt(self.more)

    def _finding_of_share(self, share: Share) -> Finding:
        """Against a number, or against `by` alone where `less` names a system."""
        if share.of == 0:
            return _untested(None, "not tested: there is no such seed")
        number = 0.0 if isinstance(self.less, str) else self.less
        limit = number + self.by
        p = share.p_other_than(limit)
        holds, fails = (p, 1.0) if share.value > limit else (1.0, p)
        low, high = share.interval(CONFIDENCE)
        value, ends = share.value - number, (low - number, high - number)
        return Finding(value, *ends, CONFIDENCE, holds, fails, "exact, binomial")

    def _finding_of_two_shares(self, measured: MeasuredRows, less: str) -> Finding:
        if self.same_seeds:
            ours, theirs = measured.learnt_by_seed(self.more), measured.learnt_by_seed(less)
            both = [seed for seed in ours if seed in theirs]
            found = paired_shares(
                [ours[seed] for seed in both], [theirs[seed] for seed in both], CONFIDENCE
            )
        else:
            of_less = measured.share_that_learnt(less)
            of_more = measured.share_that_learnt(self.more)
            found = independent_shares(of_more, of_less, CONFIDENCE)
        return _finding_of(found)

    def row(self, finding: Finding) -> list[str]:
        """What is compared, the difference, what is asked of it, how it was tested, its p."""
        measure = measure_named(self.measure)
        compared = f"scatter of {measure.label}" if self.scatter else measure.label
        if not isinstance(self.less, str):
            compared = f"{measure.label} - {measure.shown(self.less)}"

        if self.within is not None:
            asked = f"within {measure.shown(self.within)}"
        elif self.by == 0:
            asked = "above 0"
        else:
            asked = f"above {measure.shown(self.by)}"
        return [compared, finding.shown(measure), asked, finding.method, p_shown(finding.p)]


def _finding_of(found: ShareDifference) -> Finding:
    holds, fails = (found.p, 1.0) if found.value > 0 else (1.0, found.p)
    return Finding(found.value, found.low, found.high, CONFIDENCE, holds, fails, found.method)


def p_shown(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


@dataclass(frozen=True)
class Published:
    """A published figure.

    system: ours that it is held against, at a place of the axis where there is one.
    tolerance: how much worse ours may be.
    """

    system: str
    measure: str
    value: float
    tolerance: float
    __pydantic_config__: ClassVar = _NO_OTHER_KEYS

    def reached(self, measured: MeasuredRows) -> Reached:
        """Whether our mean is within the tolerance of the published figure, or better.

        A measure without a better direction must be within the tolerance. Where the mean is not,
        `undecided` as long as our interval still reaches the tolerance.
        """
        values = list(measured.by_seed(self.system, self.measure).values())
        if not values:
            return "no"
        if self._tolerates(float(np.mean(values))):
            return "yes"
        difference = difference_from(values, 0.0)
        if difference is None:
            return "undecided"
        low, high = difference.interval(CONFIDENCE)
        nearest = min(max(self.value, low), high)
        return "undecided" if self._tolerates(nearest) else "no"

    def _tolerates(self, ours: float) -> bool:
        measure = measure_named(self.measure)
        gap = (self.value - ours) * measure.sign
        if not measure.better:
            gap = abs(gap)
        return gap <= self.tolerance


def values_text(measured: MeasuredRows, system: str, measure: Measure) -> str:
    """`0.98 (0.95 to 1.00; median 0.99)`: of the seeds that learnt, cut at the measure's range."""
    values = list(measured.by_seed(system, measure.name).values())
    if not values:
        return "–"
    mean = measure.shown(float(np.mean(values)))
    ends = mean_ends(values)
    if ends is None:
        return mean
    low, high = np.clip(ends, measure.least, measure.most)
    median = measure.shown(float(np.median(values)))
    return f"{mean} ({measure.shown(low)} to {measure.shown(high)}; median {median})"


def mean_ends(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of a mean over seeds; None where it cannot be known."""
    difference = difference_from(values, 0.0)
    return None if difference is None else difference.interval(CONFIDENCE)
