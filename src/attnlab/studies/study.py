"""A study: experiments over a few choices and several seeds that test a claim or a paper.

A study is a YAML file, one of pipelines/studies or the user's own; `Study` has its keys.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pandas as pd  # type: ignore[import-untyped]
import torch
import yaml  # type: ignore[import-untyped]
from matplotlib.figure import Figure
from pydantic import Field, PositiveInt

from attnlab.config.binding import bind_settings
from attnlab.errors import ExperimentError
from attnlab.evaluation.measures import Measure
from attnlab.experiment.composition import compose
from attnlab.files import atomic_file, write_json
from attnlab.plots.figure import save_png
from attnlab.plots.systems import SeededCurve, SystemInterval, interval_panels, seeded_panels
from attnlab.project import STUDIES
from attnlab.studies.measurements import AXES, MEASUREMENTS, Point, Row, trained
from attnlab.studies.verdicts import (
    PLACE,
    Expectation,
    Published,
    Rows,
    mean_interval,
    systems_of,
    values_of,
    verdict_on_claim,
    verdict_on_replication,
)
from attnlab.tasks.saved import measure_named

LEAST_SEEDS = 3  # for a verdict


@dataclass(frozen=True)
class Study:
    """
    title, text: what is asked, and how it is measured.
    systems: {name: overrides of train.py}.
    settings: overrides that all systems share.
    seeds: how many; they are 1, 2, ...
    measurement: one of `MEASUREMENTS`.
    measures: of the table and the figure.
    expect: of the claim, or of the direction of a published effect.
    source, published: of a replication: where it is published, and the figures.
    differs: of a replication: how our setting differs.
    found: what the result teaches, once it is known; of as many seeds as the study says.
    """

    title: str
    text: str
    systems: Annotated[dict[str, list[str]], Field(min_length=1)]
    settings: list[str]
    measures: Annotated[list[str], Field(min_length=1)]
    seeds: PositiveInt = 5
    measurement: str = "evaluation"
    expect: list[Expectation] = field(default_factory=list)
    source: str = ""
    published: list[Published] = field(default_factory=list)
    differs: str = ""
    found: str = ""

    def __post_init__(self) -> None:
        if self.measurement not in MEASUREMENTS:
            raise ValueError(
                f"measurement must be one of {', '.join(MEASUREMENTS)}; got {self.measurement!r}"
            )
        for name in self._compared_names():
            if not self._has_system(name):
                raise ValueError(
                    f"expect and published must name systems ({', '.join(self.systems)}), "
                    f"got {name!r}"
                )

    def _compared_names(self) -> list[str]:
        """The names of systems in `expect` and `published`, as they stand there."""
        names = []
        for expected in self.expect:
            names.append(expected.more)
            if isinstance(expected.less, str):
                names.append(expected.less)
        return [*names, *(figure.system for figure in self.published)]

    def _has_system(self, name: str) -> bool:
        """Whether a name, `dot` or `dot @ 20`, is that of a system, or of a part of one."""
        system = name.partition(PLACE)[0]
        # A measurement may add a part: `dot: uniform`.
        return any(f"{system}: ".startswith(f"{known}: ") for known in self.systems)

    def points(self, seeds: int | None, settings: Sequence[str]) -> list[Point]:
        """The experiments, checked before any of them runs.

        seeds: how many; None for as many as the study says.
        settings: the user's, in place of those that the systems share.

        Raises ExperimentError with every problem.
        """
        if seeds is None:
            seeds = self.seeds
        if seeds < 1:
            raise ExperimentError(f"--seeds must be a whole number above 0, got {seeds}")
        common = ("tracking=none", "chain=false", *self.settings, *settings)
        points = []
        for name, of_system in self.systems.items():
            for seed in range(1, seeds + 1):
                overrides = [*common, *of_system, f"seed={seed}"]
                points.append(Point(name, seed, compose(overrides), overrides))
        return points

    def figure(self, rows: Rows) -> Figure:
        """Curves where the rows have places, else intervals: a panel for each measure."""
        if self.measurement in AXES:
            return seeded_panels(self._curves(rows), AXES[self.measurement])
        return interval_panels(self._intervals(rows))

    def _intervals(self, rows: Rows) -> dict[str, list[SystemInterval]]:
        """{heading of a measure: an interval for each system}."""
        panels: dict[str, list[SystemInterval]] = {}
        for measure in map(measure_named, self.measures):
            for number, name in enumerate(systems_of(rows)):
                interval = _shown_interval(rows, name, measure, number)
                panels.setdefault(measure.heading, []).append(interval)
        return panels

    def _curves(self, rows: Rows) -> dict[str, list[SeededCurve]]:
        """{heading of a measure: a curve for each system}."""
        panels: dict[str, list[SeededCurve]] = {}
        for measure in map(measure_named, self.measures):
            for number, name in enumerate(systems_of(rows)):
                curve = _shown_curve(rows, name, measure, number)
                panels.setdefault(measure.heading, []).append(curve)
        return panels

    def result(self, rows: Rows) -> dict[str, Any]:
        """The table, what became of each expectation and published figure, and the verdict."""
        headings = [measure_named(measure).heading for measure in self.measures]
        return {
            "verdict": self._verdict(rows),
            "headings": ["system", *headings],
            "table": self._table(rows),
            "expectations": [_expectation_row(expected, rows) for expected in self.expect],
            "published_table": [_published_row(figure, rows) for figure in self.published],
        }

    def _verdict(self, rows: Rows) -> str:
        seeds = {row["seed"] for row in rows}
        if len(seeds) < LEAST_SEEDS:
            return f"fewer than {LEAST_SEEDS} seeds"
        outcomes = [expected.outcome(rows) for expected in self.expect]
        if not self.source:
            return verdict_on_claim(outcomes)
        reached = [figure.is_reached(rows) for figure in self.published]
        return verdict_on_replication(reached, outcomes)

    def _table(self, rows: Rows) -> list[list[str]]:
        """A row for each system; none where the study measures curves."""
        if self.measurement in AXES:
            return []
        table = []
        for name in systems_of(rows):
            values = [_mean_shown(rows, name, measure) for measure in self.measures]
            table.append([name, *values])
        return table


def _shown_interval(rows: Rows, system: str, measure: Measure, number: int) -> SystemInterval:
    """number: of the system, which selects its colour."""
    values = [measure.factor * value for value in values_of(rows, system, measure.name)]
    found = mean_interval(values)
    return SystemInterval(system, values, found.mean, found.low, found.high, note="", number=number)


def _shown_curve(rows: Rows, system: str, measure: Measure, number: int) -> SeededCurve:
    """number: of the system, which selects its colour."""
    of_system = pd.DataFrame([row for row in rows if row["system"] == system])
    by_seed = of_system.pivot(index="seed", columns="at", values=measure.name)
    places = by_seed.columns.tolist()
    return SeededCurve(system, places, measure.factor * by_seed.to_numpy(float), number)


def _mean_shown(rows: Rows, system: str, measure: str) -> str:
    """The mean over the seeds with its interval."""
    return mean_interval(values_of(rows, system, measure)).shown(measure_named(measure))


def _expectation_row(expected: Expectation, rows: Rows) -> list[str]:
    """An expectation, the difference that was found, and the outcome."""
    return [expected.says, *expected.compared(rows), expected.outcome(rows)]


def _published_row(published: Published, rows: Rows) -> list[str]:
    """A published figure beside ours, and whether ours is within its tolerance."""
    system, measure = published.system, measure_named(published.measure)
    theirs = measure.shown(published.value)
    ours = _mean_shown(rows, system, measure.name)
    tolerance = measure.shown(published.tolerance)
    reached = "yes" if published.is_reached(rows) else "no"
    return [system, measure.heading, theirs, ours, tolerance, reached]


def read_study(path: Path) -> Study:
    """Raises ExperimentError for a file that is no study."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ExperimentError(f"the study {path} cannot be read: {error}") from error
    try:
        return Study(**bind_settings(content, Study))
    except (ExperimentError, ValueError) as error:
        problems = error.problems if isinstance(error, ExperimentError) else [str(error)]
        raise ExperimentError([f"{path.name}: {problem}" for problem in problems]) from error


def find_study(name: str) -> Path:
    """The file of one of our studies, or of the user's own."""
    ours = {path.stem: path for path in sorted(STUDIES.rglob("*.yaml"))}
    if name not in ours and not name.endswith(".yaml"):
        raise ExperimentError(
            f"the study must be one of {', '.join(ours)}, or a YAML file of your own; got {name!r}"
        )
    return ours.get(name, Path(name))


def measure(study: Study, points: Sequence[Point]) -> Rows:
    """Train what is missing, and measure each point."""
    measurement = MEASUREMENTS[study.measurement]
    rows: list[Row] = []
    for point in trained(points):
        rows.extend(measurement(point))
    return rows


def conditions(points: Sequence[Point], settings: Sequence[str]) -> dict[str, Any]:
    """How a study was run: its seeds, what it cost, the user's settings, the machine.

    settings: the user's; where the data lie is left out.
    """
    seeds = {point.seed for point in points}
    run_settings = [re.sub("^data.path=.*", "data.path=<folder>", text) for text in settings]
    threads = points[0].experiment.hardware.threads
    machine = (
        f"{torch.backends.cpu.get_cpu_capability()}, {threads} thread(s), "
        f"Python {platform.python_version()}, torch {torch.__version__}"
    )
    return {
        "run_seeds": len(seeds),
        "cpu_minutes": sum(point.cpu_minutes for point in points),
        "run_settings": run_settings,
        "machine": machine,
    }


def write_result(study: Study, rows: Rows, result: Mapping[str, Any], folder: Path) -> None:
    """Write the figure, the measured rows and the result of a study to its folder."""
    save_png(study.figure(rows), folder / "figure.png")
    with atomic_file(folder / "rows.csv") as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False)
    write_json(folder / "result.json", result)


def show_result(study: Study, result: Mapping[str, Any], folder: Path) -> None:
    """Print the tables of a result, and its verdict."""
    for name in ("table", "published_table", "expectations"):
        for row in result[name]:
            print(" | ".join(row))
    print(f"{study.title}: {result['verdict']}\nfigure: {folder / 'figure.png'}")
