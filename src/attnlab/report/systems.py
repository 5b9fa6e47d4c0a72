"""The systems of a comparison: runs that agree in all choices but the seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnlab.evaluation.measures import Measure
from attnlab.report.compared_runs import ComparedRun


@dataclass(frozen=True, eq=False)
class System:
    """The runs that agree in all choices but the seed.

    number: its place in the order of reading; selects its colour.
    """

    name: str
    number: int
    runs: list[ComparedRun]

    @property
    def choices(self) -> Mapping[str, str]:
        """What its runs agree in."""
        return self.runs[0].choices

    def measured(self, measure: str) -> list[float]:
        """The values of the seeds that have one."""
        return [run.measured[measure] for run in self.runs if measure in run.measured]

    def median_run(self, measure: str) -> ComparedRun:
        """The run of the median seed; of an even number of them the lower of the two."""
        measured = [run for run in self.runs if measure in run.measured]
        in_order = sorted(measured, key=lambda run: run.measured[measure])
        return in_order[(len(in_order) - 1) // 2]


def systems_of(runs: Sequence[ComparedRun]) -> list[System]:
    """Group runs into systems, in the order of their first runs."""
    by_name: dict[str, list[ComparedRun]] = {}
    for run in runs:
        by_name.setdefault(run.system, []).append(run)

    systems: list[System] = []
    for name, members in by_name.items():
        systems.append(System(name, len(systems), members))
    return systems


def ranked(systems: Sequence[System], measure: Measure) -> list[System]:
    """Systems by their mean over the seeds, the best first.

    Systems without the measure are left out.
    """
    means = {}
    for system in systems:
        values = system.measured(measure.name)
        if values:
            means[system.name] = sum(values) / len(values)

    measured = [system for system in systems if system.name in means]
    return sorted(measured, key=lambda system: -measure.sign * means[system.name])
