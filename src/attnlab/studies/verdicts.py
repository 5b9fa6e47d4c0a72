"""Verdicts on a study: its results against what was expected or published.

The verdicts follow fixed rules, from intervals over seeds. Rows are measurements, {"system",
"seed", "at", measure: value, ...}: `at` is a place on the study's axis (a source length, a
distance, a training step), and None where there is no axis.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import stats  # type: ignore[import-untyped]

from attnlab.errors import ExperimentError
from attnlab.evaluation.measures import Measure
from attnlab.tasks.saved import measure_named

Rows = Sequence[Mapping[str, Any]]
Outcome = Literal["holds", "does not hold", "undecided"]
PLACE = " @ "  # `dot @ 20` is dot at the place 20 of the axis
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean, and the ends of its 95 % interval over seeds; None where one seed gives none."""

    mean: float
    low: float | None
    high: float | None

    def minus(self, number: float) -> Interval:
        """The interval of the mean less a number."""
        if self.low is None or self.high is None:
            return Interval(self.mean - number, None, None)
        return Interval(self.mean - number, self.low - number, self.high - number)

    def shown(self, measure: Measure, signed: bool = False) -> str:
        """`31.2 (30.8 to 31.6)`."""
        mean = measure.shown(self.mean, signed)
        if self.low is None or self.high is None:
            return mean
        return f"{mean} ({measure.shown(self.low, signed)} to {measure.shown(self.high, signed)})"


_NO_OTHER_KEYS = {"extra": "forbid"}  # for pydantic, which reads them from a study


@dataclass(frozen=True)
class Expectation:
    """One mean is greater than another, or two are alike.

    says: the expectation in words.
    measure: what is compared.
    more, less: systems, `dot`, or systems at a place of the axis, `dot @ 20`. `less` may be a
        number.
    by: how much greater `more` is at least.
    within: the two differ by less than this; `by` is not used then.
    """

    says: str
    measure: str
    more: str
    less: str | float
    by: float = 0.0
    within: float | None = None
    __pydantic_config__: ClassVar = _NO_OTHER_KEYS

    def difference(self, rows: Rows) -> Interval:
        """more - less, with Welch's interval over independent seeds."""
        ours = values_of(rows, self.more, self.measure)
        if isinstance(self.less, str):
            theirs = values_of(rows, self.less, self.measure)
            return welch_interval(ours, theirs)
        return mean_interval(ours).minus(self.less)

    def compared(self, rows: Rows) -> tuple[str, str, str]:
        """What is compared, the difference, and what is asked of it, as words."""
        measure = measure_named(self.measure)
        compared = measure.label
        if not isinstance(self.less, str):
            compared = f"{measure.label} - {measure.shown(self.less)}"
        difference = self.difference(rows).shown(measure, signed=True)

        if self.within is not None:
            return compared, difference, f"within {measure.shown(self.within)}"
        if self.by == 0:
            return compared, difference, "above 0"
        return compared, difference, f"above {measure.shown(self.by)}"

    def outcome(self, rows: Rows) -> Outcome:
        """Whether the whole interval of the difference is on the expected side.

        `undecided` where it lies on neither side.
        """
        found = self.difference(rows)
        if found.low is None or found.high is None:
            return "undecided"
        if self.within is not None:
            holds = -self.within <= found.low and found.high <= self.within
            fails = found.low > self.within or found.high < -self.within
        else:
            holds = found.low > self.by
            fails = found.high <= self.by

        if holds:
            return "holds"
        return "does not hold" if fails else "undecided"


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

    def is_reached(self, rows: Rows) -> bool:
        """Whether our mean is within the tolerance of the published figure, or better.

        A measure without a better direction must be within the tolerance.
        """
        mean = mean_interval(values_of(rows, self.system, self.measure)).mean
        measure = measure_named(self.measure)
        gap = (self.value - mean) * measure.sign
        if not measure.better:
            gap = abs(gap)
        return gap <= self.tolerance


def verdict_on_claim(outcomes: Sequence[Outcome]) -> str:
    """`holds` where all expectations do, `does not hold` where some do not and none does."""
    found = set(outcomes)
    if found == {"holds"}:
        return "holds"
    if "holds" in found:
        return "holds in part"
    if "does not hold" in found:
        return "does not hold"
    return "undecided"


def verdict_on_replication(reached: Sequence[bool], outcomes: Sequence[Outcome]) -> str:
    """The verdict on a replication.

    `reproduced` where every published figure is reached, `direction only` where only the
    expectations all hold, else `not reached`.
    """
    if reached and all(reached):
        return "reproduced"
    if set(outcomes) == {"holds"}:
        return "direction only"
    return "not reproduced"


def systems_of(rows: Rows) -> list[str]:
    """The measured systems, in the order of the study."""
    return list(dict.fromkeys(row["system"] for row in rows))


def values_of(rows: Rows, system: str, measure: str) -> list[float]:
    """The values of the seeds; raises ExperimentError where the study did not measure any."""
    name, _, place = system.partition(PLACE)
    found = [row for row in rows if row["system"] == name]
    if place:
        found = [row for row in found if row["at"] == float(place)]
    values = [row[measure] for row in found if row.get(measure) is not None]
    if not values:
        measured = dict.fromkeys(f"{row['system']}{PLACE}{row['at']}" for row in rows)
        raise ExperimentError(
            f"the study measured no {measure} of {system!r}; it has {', '.join(measured)}"
        )
    return values


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean with Student's interval; values that are all alike have one without width."""
    mean = float(np.mean(values))
    count = len(values)
    if count < 2:
        return Interval(mean, None, None)
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)
    reach = float(quantile * np.std(values, ddof=1) / count**0.5)
    return Interval(mean, mean - reach, mean + reach)


def welch_interval(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """The difference of two means with Welch's interval."""
    mean = float(np.mean(ours) - np.mean(theirs))
    if min(len(ours), len(theirs)) < 2:
        return Interval(mean, None, None)
    if np.ptp(ours) == np.ptp(theirs) == 0:  # the test divides by their scatter
        return Interval(mean, mean, mean)
    # Of values that nearly agree, as exact matches near 1
    with warnings.catch_warnings(action="ignore"):
        ends = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(CONFIDENCE)
    return Interval(mean, float(ends.low), float(ends.high))
