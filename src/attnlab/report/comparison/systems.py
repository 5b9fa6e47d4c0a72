"""Systems: the runs that agree in all choices but the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.report.comparison.compared_run import ComparedRun
from attnlab.report.comparison.measures import Measure


@dataclass(frozen=True, eq=False)
class System:
    """number: its place among the systems as they were read, which gives it its colour."""

    name: str
    number: int
    runs: list[ComparedRun]

    def measured(self, measure: str) -> list[float]:
        """The values of those seeds that have one."""
        return [run.measured[measure] for run in self.runs if measure in run.measured]

    def median_run(self, measure: str) -> ComparedRun:
        """The run of the median seed; of an even number of them the lower of the two."""
        measured = [run for run in self.runs if measure in run.measured]
        in_order = sorted(measured, key=lambda run: run.measured[measure])
        return in_order[(len(in_order) - 1) // 2]


def systems_of(runs: Sequence[ComparedRun]) -> list[System]:
    """In the order of their first runs."""
    by_name: dict[str, list[ComparedRun]] = {}
    for run in runs:
        by_name.setdefault(run.system, []).append(run)
    return [System(name, number, members) for number, (name, members) in enumerate(by_name.items())]


def ranked(systems: Sequence[System], measure: Measure) -> list[System]:
    """The best one first, by the mean over the seeds; those that lack the measure are left out."""
    means = {each.name: sum(values) / len(values) for each in systems if (values := each.measured(measure.name))}
    return sorted((each for each in systems if each.name in means), key=lambda each: -measure.sign * means[each.name])
