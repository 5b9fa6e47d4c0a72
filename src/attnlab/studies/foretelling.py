"""Seeds that fail, foretold from an early validation by a rule that stood before the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import PositiveInt

from attnlab.evaluation.shares import Share
from attnlab.tasks.saved import measure_named

RESAMPLES = 10_000  # of the seeds, for the interval of the area under the curve
SEED = 1


@dataclass(frozen=True)
class Foretelling:
    """A seed is foretold to fail where a measure of an early validation lies beyond a bound.

    measure: of the validations.
    at: the training step of the validation.
    below, above: the bound; one of them.
    """

    measure: str
    at: PositiveInt
    below: float | None = None
    above: float | None = None
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        if (self.below is None) == (self.above is None):
            raise ValueError(
                f"one of below and above must be given, got {self.below} and {self.above}"
            )

    def foretells_failure(self, value: float) -> bool:
        if self.below is not None:
            return value < self.below
        assert self.above is not None
        return value > self.above

    @property
    def place(self) -> str:
        """`attention entropy after 50 steps`."""
        return f"{measure_named(self.measure).label} after {self.at:,} steps"

    @property
    def bound(self) -> str:
        """`below 0.50`."""
        measure = measure_named(self.measure)
        if self.below is not None:
            return f"below {measure.shown(self.below)}"
        return f"above {measure.shown(self.above)}"


@dataclass(frozen=True)
class Foretold:
    """What a rule said of the seeds of a model, beside what became of them.

    failed, learnt: {seed: the early value}.
    """

    rule: Foretelling
    failed: Mapping[int, float]
    learnt: Mapping[int, float]

    @property
    def failures(self) -> Share:
        """How many of the seeds that failed were foretold to fail."""
        return Share(sum(map(self.rule.foretells_failure, self.failed.values())), len(self.failed))

    @property
    def spared(self) -> Share:
        """How many of the seeds that learnt were not foretold to fail."""
        blamed = sum(map(self.rule.foretells_failure, self.learnt.values()))
        return Share(len(self.learnt) - blamed, len(self.learnt))

    def area_under_curve(self) -> tuple[float, float, float] | None:
        """How often a failed seed lies further on the rule's side than one that learnt.

        The area under the ROC curve, equal values counted half, whatever the bound; with the ends
        of its 95 % interval, by resampling the seeds of both kinds (percentiles). 0.5 is chance.
        None where no seed failed, or none learnt.
        """
        if not self.failed or not self.learnt:
            return None
        sign = -1 if self.rule.below is not None else 1
        failed = sign * np.array(list(self.failed.values()))
        learnt = sign * np.array(list(self.learnt.values()))
        wins = (failed[:, None] > learnt) + 0.5 * (failed[:, None] == learnt)  # (failed, learnt)

        # The mean of `wins` over resampled rows and columns, by how often each of them was drawn.
        draws = np.random.default_rng(SEED)
        rows = draws.multinomial(len(failed), [1 / len(failed)] * len(failed), RESAMPLES)
        columns = draws.multinomial(len(learnt), [1 / len(learnt)] * len(learnt), RESAMPLES)
        areas = np.einsum("nf,fl,nl->n", rows, wins, columns, optimize=True) / wins.size
        low, high = np.quantile(areas, [0.025, 0.975])
        return float(wins.mean()), float(low), float(high)
