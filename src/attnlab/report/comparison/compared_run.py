"""A run as it takes part in a comparison, wherever it was read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from attnlab.report.comparison.evaluation_files import EvaluationFiles

COSTS = ("cpu_seconds", "peak_megabytes")


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """A trained model and its evaluation.

    system: what it is one seed of.
    choices: what varies between the systems, by short names, as text; without the seed.
    seed: as text; empty where it is not known.
    history: {name: [(step, value), ...]} of training and validation.
    cpu_seconds: of the training; peak_megabytes: the most memory it held. None where nobody counted.
    """

    name: str
    system: str
    choices: Mapping[str, str]
    seed: str
    evaluation: EvaluationFiles = field(repr=False)
    history: Mapping[str, Sequence[tuple[int, float]]] = field(repr=False)
    cpu_seconds: float | None
    peak_megabytes: float | None
    run_id: str | None

    @property
    def measured(self) -> dict[str, float]:
        """Test metrics and costs, by name."""
        costs = {name: getattr(self, name) for name in COSTS}
        return {**self.evaluation.metrics, **{name: value for name, value in costs.items() if value is not None}}


@dataclass(frozen=True)
class LeftOut:
    """A point that takes no part, and why."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class ComparedRuns:
    """What is compared.

    title: of the page.
    told: what was swept or asked for, as (word, value).
    parent: the run in the tracker that all of them are children of.
    """

    title: str
    told: list[tuple[str, str]]
    runs: list[ComparedRun]
    left_out: list[LeftOut]
    parent: str | None = None


def each_once(runs: Sequence[ComparedRun]) -> tuple[list[ComparedRun], list[LeftOut]]:
    """The runs without those that repeat an experiment: the same model measured twice is no second seed."""
    first: dict[tuple[str, str], ComparedRun] = {}
    repeated = []
    for run in runs:
        same = first.setdefault((run.system, run.seed), run)
        if same is not run:
            repeated.append(LeftOut(run.name, f"the same choices and seed as {same.name}"))
    return list(first.values()), repeated


def title_of(varied: str, runs: Sequence[ComparedRun]) -> str:
    """`attention × seed: 6 runs of 3 systems`."""
    systems = len({run.system for run in runs})
    return f"{varied}: {len(runs)} run{'s' * (len(runs) != 1)} of {systems} system{'s' * (systems != 1)}"
