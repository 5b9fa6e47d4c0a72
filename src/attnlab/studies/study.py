"""A study: experiments over a few choices and several seeds that test a claim or a paper.

A study is a YAML file, one of pipelines/studies or the user's own; `Study` has its keys.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

import pandas as pd  # type: ignore[import-untyped]
import torch
import yaml  # type: ignore[import-untyped]
from matplotlib.figure import Figure
from pydantic import Field, PositiveInt

from attnlab.config.binding import bind_settings
from attnlab.config.params import git_tags
from attnlab.errors import ExperimentError
from attnlab.evaluation.measures import Measure
from attnlab.experiment.composition import compose
from attnlab.files import atomic_file, write_json
from attnlab.plots.figure import save_png
from attnlab.plots.systems import SeededCurve, SystemInterval, interval_panels, seeded_panels
from attnlab.project import STUDIES
from attnlab.studies.expectations import (
    LEARNT,
    Expectation,
    Finding,
    Outcome,
    Published,
    mean_ends,
    values_text,
)
from attnlab.studies.look import Look, look_at
from attnlab.studies.measured_rows import (
    PLACE,
    Learnt,
    MeasuredRows,
    Rows,
    SentenceCovariances,
)
from attnlab.studies.measurements import AXES, MEASUREMENTS, Point, Row, trained
from attnlab.studies.registration import digest_of, digest_of_training, registration_of
from attnlab.studies.sentence_scatter import (
    read_covariances,
    sentence_covariances,
    write_covariances,
)
from attnlab.studies.tuning import Trial, Tuned, Tuning
from attnlab.studies.verdicts import (
    LEAST_SEEDS,
    outcomes_of_family,
    verdict_on_claim,
    verdict_on_replication,
)
from attnlab.tasks.saved import measure_named

ROWS, SENTENCES, RESULT = "rows.csv", "sentences.csv", "result.json"


@dataclass(frozen=True)
class Study:
    """
    title, text: what is asked, and how it is measured.
    systems: {name: overrides of train.py}.
    settings: overrides that all systems share.
    seeds: how many, from `first_seed` on.
    looks: after how many seeds the study may end, the last one being `seeds`; empty for the end
        alone.
    measurement: one of `MEASUREMENTS`.
    measures: of the table and the figure.
    expect: of the claim, or of the direction of a published effect. The primary ones decide; a
        single one is primary.
    depends_on: what several primary expectations differ in, such as the score.
    family: studies of the same name are corrected together for their number.
    tune: the keys of a `Tuning`, a setting that each system has at its best value, chosen on
        validation; empty for none.
    learnt: {measure: the value from which a seed counts as learnt}; means and differences are over
        those seeds. One measure; empty counts all seeds.
    known: what was known before the run, such as a pilot; empty for nothing.
    source, published: of a replication: where it is published, and the figures.
    differs: of a replication: how our setting differs.
    comparable: of a replication: whether the published setup was run.
    found: what the result teaches, once it is known; of as many seeds as the study says.
    """

    title: str
    text: str
    systems: Annotated[dict[str, list[str]], Field(min_length=1)]
    settings: list[str]
    measures: Annotated[list[str], Field(min_length=1)]
    seeds: PositiveInt = 5
    first_seed: PositiveInt = 1
    looks: list[PositiveInt] = field(default_factory=list)
    measurement: str = "evaluation"
    expect: list[Expectation] = field(default_factory=list)
    depends_on: str = ""
    family: str = ""
    tune: dict[str, Any] = field(default_factory=dict)
    learnt: dict[str, float] = field(default_factory=dict)
    known: str = ""
    source: str = ""
    published: list[Published] = field(default_factory=list)
    differs: str = ""
    comparable: bool = True
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
        self._check_expectations()
        self._check_looks()
        self._check_tuning()

    @property
    def threshold(self) -> Learnt | None:
        """When a seed counts as learnt; None where all do."""
        for measure, reaches in self.learnt.items():
            return Learnt(measure, reaches)
        return None

    def _check_expectations(self) -> None:
        if len(self.learnt) > 1:
            raise ValueError(f"learnt must name one measure, got {', '.join(self.learnt)}")
        if len(self.expect) > 1 and not self.primary:
            raise ValueError("one of expect must be the primary one: give it primary: true")
        if len(self.primary) > 1 and not self.depends_on:
            raise ValueError(
                "depends_on must say what the primary expectations differ in, such as the score"
            )
        for expected in self.expect:
            if not self.learnt and expected.measure == LEARNT:
                raise ValueError("an expectation of the measure learnt needs the study's learnt")
            if not self.learnt and expected.needs_learnt and expected in self.primary:
                raise ValueError(
                    f"{expected.says!r} asks for two means within {expected.within}: seeds that "
                    "fail seldom would hide among few; learnt must say when a seed has learnt"
                )

    def _check_looks(self) -> None:
        if not self.looks:
            return
        rising = self.looks == sorted(set(self.looks))
        if not rising or self.looks[0] < LEAST_SEEDS or self.looks[-1] != self.seeds:
            raise ValueError(
                f"looks must rise from {LEAST_SEEDS} or more seeds to seeds, which is "
                f"{self.seeds}; got {self.looks}"
            )
        if len(self.primary) != 1 or self.family:
            raise ValueError("looks need one primary expectation, and no family")

    @cached_property
    def tuning(self) -> Tuning | None:
        """Raises ExperimentError for keys or values that are none of a `Tuning`."""
        if not self.tune:
            return None
        try:
            return Tuning(**bind_settings(self.tune, Tuning))
        except ExperimentError as error:
            raise ExperimentError([f"tune.{problem}" for problem in error.problems]) from error

    def _check_tuning(self) -> None:
        if self.tuning is None:
            return
        own = range(self.first_seed, self.first_seed + self.seeds)
        both = [seed for seed in self.tuning.seeds if seed in own]
        if both:
            raise ValueError(
                f"tune.seeds must not be seeds of the study ({own[0]} to {own[-1]}), got {both}; "
                "a value that was chosen on a seed flatters it"
            )

    def counts_of_seeds(self, seeds: int | None) -> list[int]:
        """After how many seeds the study is measured, the last one being `seeds` or its own."""
        last = self.seeds if seeds is None else seeds
        if last not in self.looks:
            return [last]
        return [look for look in self.looks if look <= last]

    def look(self, rows: Rows, sentences: SentenceCovariances) -> Look:
        """What the seeds so far mean for the study, which has looks."""
        measured = self.measured(rows, sentences)
        (expected,) = self.primary
        return look_at(expected.finding(measured), measured.seeds, self.looks)

    @property
    def primary(self) -> list[Expectation]:
        """The expectations that decide."""
        if len(self.expect) == 1:
            return list(self.expect)
        return [expected for expected in self.expect if expected.primary]

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

    def points(
        self, seeds: int | None, settings: Sequence[str], tuned: Tuned | None = None
    ) -> list[Point]:
        """The experiments, checked before any of them runs.

        seeds: how many; None for as many as the study says.
        settings: the user's, in place of those that the systems share.
        tuned: the values of `tune` that were chosen.

        Raises ExperimentError with every problem.
        """
        if seeds is None:
            seeds = self.seeds
        if seeds < 1:
            raise ExperimentError(f"--seeds must be a whole number above 0, got {seeds}")
        points = []
        for name, of_system in self.systems.items():
            own = of_system if tuned is None else [*of_system, tuned.override(name)]
            for seed in range(self.first_seed, self.first_seed + seeds):
                points.append(self._point(settings, name, seed, own))
        return points

    def trials(self, settings: Sequence[str]) -> list[Trial]:
        """The trainings that `tune` needs; none without it."""
        if self.tuning is None:
            return []
        return self.tuning.points(self.systems, partial(self._point, settings))

    def _point(
        self, settings: Sequence[str], name: str, seed: int, of_system: Sequence[str]
    ) -> Point:
        common = ("tracking=none", "chain=false", *self.settings, *settings)
        overrides = [*common, *of_system, f"seed={seed}"]
        return Point(name, seed, compose(overrides), overrides)

    def measured(self, rows: Rows, sentences: SentenceCovariances | None = None) -> MeasuredRows:
        return MeasuredRows(rows, list(self.systems), self.threshold, sentences)

    def figure(self, rows: Rows) -> Figure:
        """Curves where the rows have places, else intervals: a panel for each measure."""
        if self.measurement in AXES:
            return seeded_panels(self._curves(rows), AXES[self.measurement])
        return interval_panels(self._intervals(self.measured(rows)))

    def _intervals(self, measured: MeasuredRows) -> dict[str, list[SystemInterval]]:
        """{heading of a measure: an interval for each system}."""
        panels: dict[str, list[SystemInterval]] = {}
        for measure in map(measure_named, self.measures):
            for number, name in enumerate(measured.systems):
                interval = _shown_interval(measured, name, measure, number)
                if interval is not None:
                    panels.setdefault(measure.heading, []).append(interval)
        return panels

    def _curves(self, rows: Rows) -> dict[str, list[SeededCurve]]:
        """{heading of a measure: a curve for each system}."""
        panels: dict[str, list[SeededCurve]] = {}
        for measure in map(measure_named, self.measures):
            for number, name in enumerate(self.measured(rows).systems):
                curve = _shown_curve(rows, name, measure, number)
                panels.setdefault(measure.heading, []).append(curve)
        return panels

    def result(self, rows: Rows, sentences: SentenceCovariances | None = None) -> dict[str, Any]:
        """The table, what became of each expectation and published figure, and the verdict."""
        measured = self.measured(rows, sentences)
        findings = [expected.finding(measured) for expected in self.expect]
        primary = [
            finding
            for expected, finding in zip(self.expect, findings, strict=True)
            if expected in self.primary
        ]
        result: dict[str, Any] = {
            "seeds": measured.seeds,
            "headings": self._headings(),
            "table": self._table(measured),
            "expectations": [
                [expected.says, *expected.row(finding)]
                for expected, finding in zip(self.expect, findings, strict=True)
            ],
            "primary": [[finding.p_holds, finding.p_fails] for finding in primary],
            "published_table": [_published_row(figure, measured) for figure in self.published],
        }
        if self.looks:
            look = look_at(primary[0], measured.seeds, self.looks)
            result["look"] = {"level": look.level, "why": look.why}
        # Of this study alone; its family is corrected on the page of all studies.
        return result | {"verdict": self.verdict(result, self.outcomes(result, primary))}

    def outcomes(self, result: Mapping[str, Any], primary: Sequence[Finding]) -> list[Outcome]:
        """Those of the primary expectations: at a look, or corrected over all of them."""
        if not self.looks:
            return outcomes_of_family(primary)
        level = result["look"]["level"]
        return [finding.outcome(level=level or 0.0) for finding in primary]

    def verdict(self, result: Mapping[str, Any], outcomes: Sequence[Outcome]) -> str:
        """outcomes: of the primary expectations."""
        if result["seeds"] < LEAST_SEEDS:
            return f"fewer than {LEAST_SEEDS} seeds"
        if not self.source:
            return verdict_on_claim(outcomes, self.depends_on)
        reached = [row[-1] for row in result["published_table"]]
        return verdict_on_replication(reached, outcomes, self.comparable)

    def _headings(self) -> list[str]:
        headings = [measure_named(measure).heading for measure in self.measures]
        learnt = ["seeds that learnt"] if self.learnt else []
        return ["system", *learnt, *headings]

    def _table(self, measured: MeasuredRows) -> list[list[str]]:
        """A row for each system; none where the study measures curves."""
        if self.measurement in AXES:
            return []
        table = []
        for name in measured.systems:
            learnt = [_learnt_text(measured, name)] if self.learnt else []
            values = [values_text(measured, name, measure_named(each)) for each in self.measures]
            table.append([name, *learnt, *values])
        return table


def _learnt_text(measured: MeasuredRows, system: str) -> str:
    """`4 of 5 (0.28 to 0.99)`."""
    share = measured.share_that_learnt(measured.model_of(system))
    low, high = share.interval(0.95)
    return f"{share.count} of {share.of} ({low:.2f} to {high:.2f})"


def _shown_interval(
    measured: MeasuredRows, system: str, measure: Measure, number: int
) -> SystemInterval | None:
    """None where no seed learnt. number: of the system, which selects its colour."""
    of_seeds = measured.by_seed(system, measure.name).values()
    values = [measure.factor * value for value in of_seeds]
    if not values:
        return None
    low, high = mean_ends(values) or (None, None)
    mean = sum(values) / len(values)
    return SystemInterval(system, values, mean, low, high, note="", number=number)


def _shown_curve(rows: Rows, system: str, measure: Measure, number: int) -> SeededCurve:
    """number: of the system, which selects its colour."""
    of_system = pd.DataFrame([row for row in rows if row["system"] == system])
    by_seed = of_system.pivot(index="seed", columns="at", values=measure.name)
    places = by_seed.columns.tolist()
    return SeededCurve(system, places, measure.factor * by_seed.to_numpy(float), number)


def _published_row(published: Published, measured: MeasuredRows) -> list[str]:
    """A published figure beside ours, and whether ours is within its tolerance."""
    system, measure = published.system, measure_named(published.measure)
    theirs = measure.shown(published.value)
    ours = values_text(measured, system, measure)
    tolerance = measure.shown(published.tolerance)
    return [system, measure.heading, theirs, ours, tolerance, published.reached(measured)]


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


@dataclass(frozen=True, eq=False)
class Measurements:
    """What a study measured, and under which conditions.

    sentences: how the means scatter by the choice of the test sentences.
    conditions: what `conditions` found.
    """

    rows: Rows
    sentences: SentenceCovariances
    conditions: Mapping[str, Any]


def measurements_of(
    study: Study,
    path: Path,
    points: Sequence[Point],
    settings: Sequence[str],
    trials: Sequence[Trial] = (),
    tuned: Tuned | None = None,
) -> Measurements:
    """Train what is missing, and measure it.

    path: of the study's file. settings: the user's. trials, tuned: of the study's `tune`.
    """
    rows = measure(study, points)
    sentences = sentence_covariances(points, study.measured(rows), study.measurement)
    found = conditions(path, points, settings, trials)
    if tuned is not None:
        found["tuned"] = tuned.record()
    return Measurements(rows, sentences, found)


_CONDITIONS = (
    "run_seeds", "cpu_minutes", "run_settings", "machine", "revision", "began", "registered",
    "tuned", "trained",
)  # fmt: skip


def conditions(
    path: Path, points: Sequence[Point], settings: Sequence[str], trials: Sequence[Trial] = ()
) -> dict[str, Any]:
    """How a study was run, and when its question was written down.

    settings: the user's; where the data lie is left out.
    trials: what was trained to choose settings.
    """
    of_trials = [point for trial in trials for point in trial.points]
    everything = [*of_trials, *points]
    seeds = {point.seed for point in points}
    run_settings = [re.sub("^data.path=.*", "data.path=<folder>", text) for text in settings]
    threads = points[0].experiment.hardware.threads
    machine = (
        f"{torch.backends.cpu.get_cpu_capability()}, {threads} thread(s), "
        f"Python {platform.python_version()}, torch {torch.__version__}"
    )
    began = min(point.began for point in everything)
    registration = registration_of(path)
    return {
        "run_seeds": len(seeds),
        "cpu_minutes": sum(point.cpu_minutes for point in everything),
        "run_settings": run_settings,
        "machine": machine,
        "revision": git_tags(path.resolve().parent)["git_revision"],
        "began": began.isoformat(timespec="seconds"),
        "trained": digest_of_training(path.read_text(encoding="utf-8")),
        "registered": {
            "digest": registration.digest,
            "commit": registration.commit,
            "before": registration.is_before(began),
        },
    }


def write_measurements(measurements: Measurements, folder: Path) -> None:
    """Write the rows, and how they scatter by the sentences, to a study's folder."""
    with atomic_file(folder / ROWS) as temporary:
        pd.DataFrame(measurements.rows).to_csv(temporary, index=False)
    write_covariances(measurements.sentences, folder / SENTENCES)


def check_rows(study: Study, path: Path, measurements: Measurements) -> None:
    """Raise ExperimentError where rows were not measured of what the study trains now.

    path: of the study's file.
    """
    trained_now = digest_of_training(path.read_text(encoding="utf-8"))
    problem = ""
    if measurements.conditions.get("trained", trained_now) != trained_now:
        problem = "they were trained with other systems, settings or seeds"
    seeds = {int(row["seed"]) for row in measurements.rows}
    if min(seeds) != study.first_seed:
        problem = f"their seeds begin at {min(seeds)}, those of the study at {study.first_seed}"
    if ("tuned" in measurements.conditions) != (study.tuning is not None):
        problem = "a setting was tuned for one of both alone"
    if problem:
        raise ExperimentError(
            f"the rows of {path.stem} do not answer what it asks now: {problem}; run it anew"
        )


def judge(study: Study, path: Path, measurements: Measurements, folder: Path) -> dict[str, Any]:
    """Judge what was measured, and write the figure and the result to a study's folder.

    path: of the study's file. Returns the result.
    """
    rows, sentences = measurements.rows, measurements.sentences
    result = study.result(rows, sentences) | dict(measurements.conditions)
    result["question"] = digest_of(path.read_text(encoding="utf-8"))
    save_png(study.figure(rows), folder / "figure.png")
    write_json(folder / RESULT, result)
    return result


def read_measurements(folder: Path) -> Measurements:
    """What was measured before; raises ExperimentError where nothing was."""
    if not (folder / RESULT).is_file() or not (folder / ROWS).is_file():
        raise ExperimentError(f"--judge needs the rows of a study that was run; {folder} has none")
    found = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    table = pd.read_csv(folder / ROWS)
    rows = [
        {name: value for name, value in row.items() if name == "at" or not pd.isna(value)}
        for row in table.to_dict("records")
    ]
    kept = {name: found[name] for name in _CONDITIONS if name in found}
    return Measurements(rows, read_covariances(folder / SENTENCES), kept)


def show_result(study: Study, result: Mapping[str, Any], folder: Path) -> None:
    """Print the tables of a result, and its verdict."""
    for name in ("table", "published_table", "expectations"):
        for row in result[name]:
            print(" | ".join(row))
    print(f"{study.title}: {result['verdict']}\nfigure: {folder / 'figure.png'}")
