"""A setting that each system of a study has at the value that is best for it.

It is chosen on the validation split, with seeds that the study itself does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Annotated, Any, ClassVar

from pydantic import Field, PositiveInt

from attnlab.errors import ExperimentError
from attnlab.studies.measurements import Point, history, train_each
from attnlab.tasks.saved import measure_named

Value = int | float | str


@dataclass(frozen=True)
class Tuning:
    """
    setting: of train.py, such as `training.optimizer.lr`.
    values: that are tried.
    by: a measure of the validations; each training counts with its best one.
    seeds: of the trainings that choose, over which `by` is averaged.
    """

    setting: Annotated[str, Field(min_length=1)]
    values: Annotated[list[Value], Field(min_length=2)]
    by: str
    seeds: Annotated[list[PositiveInt], Field(min_length=1)]
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def override(self, value: Value) -> str:
        return f"{self.setting}={value}"

    def points(
        self,
        systems: Mapping[str, Sequence[str]],
        point: Callable[[str, int, Sequence[str]], Point],
    ) -> list[Trial]:
        """The trainings that choose.

        systems: {name: its overrides}. point: makes one of a system, a seed and overrides.
        """
        trials = []
        for name, overrides in systems.items():
            for value in self.values:
                with_value = [*overrides, self.override(value)]
                points = [point(name, seed, with_value) for seed in self.seeds]
                trials.append(Trial(name, value, points))
        return trials


@dataclass(frozen=True)
class Trial:
    """The trainings of a system with one value."""

    system: str
    value: Value
    points: Sequence[Point]


@dataclass(frozen=True)
class Tuned:
    """What the trials found.

    means: {system: {value: the mean over the seeds of the best validation}}.
    """

    tuning: Tuning
    means: Mapping[str, Mapping[Value, float]]

    def value(self, system: str) -> Value:
        """The best one; of equals the first."""
        sign = measure_named(self.tuning.by).sign
        means = self.means[system]
        return max(means, key=lambda value: sign * means[value])

    def override(self, system: str) -> str:
        return self.tuning.override(self.value(system))

    def record(self) -> dict[str, Any]:
        """For the study's result: what was tried, and the table with the chosen values."""
        tuning = self.tuning
        measure = measure_named(tuning.by)
        rows = []
        for system, means in self.means.items():
            shown = [measure.shown(means[value]) for value in tuning.values]
            rows.append([system, *shown, self._chosen_text(system)])
        return {
            "setting": tuning.setting,
            "by": measure.label,
            "seeds": tuning.seeds,
            "headings": ["system", *map(str, tuning.values), "chosen"],
            "table": rows,
        }

    def _chosen_text(self, system: str) -> str:
        value, numbers = self.value(system), self.tuning.values
        at_end = value in (numbers[0], numbers[-1])
        return f"{value} (an end of what was tried)" if at_end else str(value)


def choose_values(tuning: Tuning, trials: Sequence[Trial]) -> Tuned:
    """Train what is missing of the trials, and compare them.

    Raises ExperimentError where the validations lack the measure.
    """
    points = [point for trial in trials for point in trial.points]
    best = {id(point): _best_validation(point, tuning.by) for point in train_each(points)}
    means: dict[str, dict[Value, float]] = {}
    for trial in trials:
        of_seeds = [best[id(point)] for point in trial.points]
        means.setdefault(trial.system, {})[trial.value] = mean(of_seeds)
    return Tuned(tuning, means)


def _best_validation(point: Point, measure: str) -> float:
    sign = measure_named(measure).sign
    values = [row[measure] for row in history(point) if measure in row]
    if not values:
        known = dict.fromkeys(name for row in history(point) for name in row)
        measures = [name for name in known if name not in ("system", "seed", "at")]
        raise ExperimentError(
            f"tune.by must be a measure of the validations ({', '.join(measures)}), got {measure!r}"
        )
    return max(values, key=lambda value: sign * value)
