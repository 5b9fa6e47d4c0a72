"""Runs of a comparison, and their evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from attnlab.evaluation.corpus_metric import CorpusMetric
from attnlab.evaluation.evaluation_files import EvaluationFiles
from attnlab.evaluation.measures import Measure, Measures
from attnlab.evaluation.own_metrics import RecordedMetric
from attnlab.tasks.report_section import ReportSection


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """A trained model and its evaluation.

    system: the name of its system.
    task: its name.
    section: what the pages show of its task.
    own_metrics: that its config added, by name.
    resampled: those of them whose code may run here, to resample their sentences.
    choices: {name: text} of what varies between systems, without the seed.
    seed: as text; empty where unknown.
    history: {name: [(step, value), ...]} of training and validation.
    costs: `cpu_seconds` and `peak_megabytes` of the training, where they were measured.
    parameters: {name: text} of all settings that affect the results, the choices left out.
    report: its page; None where there is none.
    """

    name: str
    choices: Mapping[str, str]
    seed: str
    task: str
    section: ReportSection = field(repr=False)
    own_metrics: Mapping[str, RecordedMetric] = field(repr=False)
    resampled: Mapping[str, CorpusMetric] = field(repr=False)
    evaluation: EvaluationFiles = field(repr=False)
    history: Mapping[str, Sequence[tuple[int, float]]] = field(repr=False)
    costs: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    run_id: str | None = None
    report: Path | None = None
    system: str = ""

    @property
    def measured(self) -> dict[str, float]:
        """Test metrics and costs, by name."""
        return {**self.evaluation.metrics, **self.costs}

    @cached_property
    def test_set(self) -> str:
        """A digest of the sentences that it was tested on."""
        return self.section.test_set(self.evaluation)


@dataclass(frozen=True)
class LeftOut:
    """A run that was left out, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class ComparedRuns:
    """Runs to compare.

    title: of the page.
    facts: about the selection, as (label, value).
    parent: the tracker's run whose children they all are.
    more_seeds: the command that adds seeds; None where it is not known.
    """

    title: str
    facts: list[tuple[str, str]]
    runs: list[ComparedRun]
    left_out: list[LeftOut]
    parent: str | None = None
    more_seeds: str | None = None

    @property
    def measures(self) -> Measures:
        """What the pages know of the metrics."""
        return measures_of(self.runs)

    @property
    def choices(self) -> list[str]:
        """The names of all choices."""
        names: dict[str, None] = {}
        for run in self.runs:
            names |= dict.fromkeys(run.choices)
        return list(names)

    @property
    def parameters(self) -> list[str]:
        """The names of all parameters of any run, those with short names first."""
        names = set[str]().union(*(run.parameters for run in self.runs))
        return sorted(names, key=lambda name: ("." in name, name))


def measures_of(runs: Sequence[ComparedRun]) -> Measures:
    """What the pages know of the metrics of some runs, which are of one task."""
    section = runs[0].section
    own: dict[str, Measure] = {}
    for run in runs:
        own |= {name: each.measure for name, each in run.own_metrics.items()}
    return Measures((*section.measures, *own.values()), section.ranked_by)


def measured_names(runs: Sequence[ComparedRun]) -> list[str]:
    """The names of all measures that any run has, in the order of the page."""
    names: set[str] = set()
    for run in runs:
        names |= run.measured.keys()
    return measures_of(runs).in_order(names)
