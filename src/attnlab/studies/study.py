"""A study: experiments over a few choices and several seeds that test a claim or a paper.

A study is a YAML file, one of pipelines/studies or the user's own; `Study` has its keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml  # type: ignore[import-untyped]
from pydantic import Field, PositiveInt

from attnlab.config.binding import bind_settings
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.project import STUDIES
from attnlab.studies.expectations import FORETOLD, SHARES, SPARED, Expectation, Published
from attnlab.studies.few_seeds import FewSeeds
from attnlab.studies.foretelling import Foretelling
from attnlab.studies.measured_rows import (
    PLACE,
    Learnt,
    MeasuredRows,
    Rows,
    SentenceCovariances,
)
from attnlab.studies.measurements import AXES, MEASUREMENTS, Point
from attnlab.studies.tuning import Trial, Tuned, Tuning
from attnlab.studies.verdicts import LEAST_SEEDS

SEED = "<seed>"  # in overrides of systems: the number of the seed
Part = TypeVar("Part", Tuning, Foretelling, FewSeeds)


@dataclass(frozen=True)
class Study:
    """
    title, text: what is asked, and how it is measured.
    background, limits: of a study with a page of its own: why it is asked, with sources, and what
        its result does not say.
    systems: {name: overrides of train.py}. `<seed>` in them stands for the number of the seed,
        which is the experiment's `seed` where the system does not set that itself.
    settings: overrides that all systems share.
    seeds: how many, from `first_seed` on.
    looks: after how many seeds the study may end, the last one being `seeds`; empty for the end
        alone.
    measurement: one of `MEASUREMENTS`.
    measures: of the table and the figure.
    expect: of the claim, or of the direction of a published effect. The primary ones decide; a
        single one is primary, unless it says `primary: false`.
    depends_on: what several primary expectations differ in, such as the score.
    family: studies of the same name are corrected together for their number.
    tune: the keys of a `Tuning`, a setting that each system has at its best value, chosen on
        validation; empty for none.
    learnt: {measure: the value from which a seed counts as learnt}; means and differences are over
        those seeds. One measure; empty counts all seeds.
    foretell: the keys of a `Foretelling`, a rule that says from an early validation which seeds
        fail; empty for none. The measurement is `history` then.
    few_seeds: the keys of a `FewSeeds`, what comparisons of fewer seeds would have claimed; empty
        for none.
    paired: whether all systems of a seed start with the same weights and read the same batches, so
        that their differences are paired by seed.
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
    foretell: dict[str, Any] = field(default_factory=dict)
    few_seeds: dict[str, Any] = field(default_factory=dict)
    paired: bool = False
    known: str = ""
    source: str = ""
    published: list[Published] = field(default_factory=list)
    differs: str = ""
    comparable: bool = True
    background: str = ""
    limits: str = ""
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
        self._check_few_seeds()
        if self.foretelling is not None and (self.measurement != "history" or not self.learnt):
            raise ValueError("foretell needs learnt, and measurement: history")

    @property
    def threshold(self) -> Learnt | None:
        """When a seed counts as learnt; None where all do."""
        if not self.learnt:
            return None
        ((measure, reaches),) = self.learnt.items()
        return Learnt(measure, reaches)

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
            if not self.learnt and expected.measure in SHARES:
                raise ValueError(
                    f"an expectation of the measure {expected.measure} needs the study's learnt"
                )
            if not self.foretell and expected.measure in (FORETOLD, SPARED):
                raise ValueError(
                    f"an expectation of the measure {expected.measure} needs the study's foretell"
                )
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
        return _part("tune", self.tune, Tuning)

    @cached_property
    def foretelling(self) -> Foretelling | None:
        """Raises ExperimentError for keys or values that are none of a `Foretelling`."""
        return _part("foretell", self.foretell, Foretelling)

    @cached_property
    def comparisons(self) -> FewSeeds | None:
        """Raises ExperimentError for keys or values that are none of a `FewSeeds`."""
        return _part("few_seeds", self.few_seeds, FewSeeds)

    def _check_few_seeds(self) -> None:
        if self.comparisons is None:
            return
        most = max(self.comparisons.seeds)
        if 2 * most > self.seeds:
            raise ValueError(
                f"few_seeds.seeds must be at most half of seeds, which is {self.seeds}: both sides "
                f"of a comparison have seeds of their own; got {most}"
            )
        if self.measurement in AXES:
            raise ValueError(
                f"few_seeds needs a measurement without an axis, got {self.measurement}"
            )

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

    @property
    def primary(self) -> list[Expectation]:
        """The expectations that decide."""
        if len(self.expect) == 1 and self.expect[0].primary is None:
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

        Raises ExperimentError with the problems of the first experiment that has some.
        """
        if seeds is None:
            seeds = self.seeds
        if seeds < 1:
            raise ExperimentError(f"--seeds must be a whole number above 0, got {seeds}")
        points = []
        # Seed by seed, so that a machine that slows down slows down every system.
        for seed in range(self.first_seed, self.first_seed + seeds):
            for name, of_system in self.systems.items():
                own = of_system if tuned is None else [*of_system, tuned.override(name)]
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
        own = [override.replace(SEED, str(seed)) for override in of_system]
        if not any(override.startswith("seed=") for override in own):
            own.append(f"seed={seed}")
        overrides = ["tracking=none", "chain=false", *self.settings, *settings, *own]
        return Point(name, seed, compose(overrides), overrides)

    def measured(self, rows: Rows, sentences: SentenceCovariances | None = None) -> MeasuredRows:
        return MeasuredRows(
            rows, list(self.systems), self.threshold, sentences, self.paired, self.foretelling
        )


def _part(name: str, settings: dict[str, Any], kind: type[Part]) -> Part | None:
    """An object of a study's part; None where it is empty. Errors name the part."""
    if not settings:
        return None
    try:
        return kind(**bind_settings(settings, kind))
    except ExperimentError as error:
        raise ExperimentError([f"{name}.{problem}" for problem in error.problems]) from error
    except ValueError as error:
        raise ExperimentError(f"{name}: {error}") from error


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


def find_studies(name: str) -> list[Path]:
    """The files of all studies of a folder, `museum`, or of one study.

    Raises ExperimentError where there is no such study.
    """
    of_folder = sorted((STUDIES / name).glob("*.yaml")) if name.isidentifier() else []
    return of_folder or [find_study(name)]


def find_study(name: str) -> Path:
    """The file of one of our studies, or of the user's own."""
    ours = {path.stem: path for path in sorted(STUDIES.rglob("*.yaml"))}
    if name not in ours and not name.endswith(".yaml"):
        raise ExperimentError(
            f"the study must be one of {', '.join(ours)}, or a YAML file of your own; got {name!r}"
        )
    path = ours.get(name, Path(name))
    if path.stem in ours and path.resolve() != ours[path.stem].resolve():
        raise ExperimentError(
            f"{path}: {path.stem} is the name of one of attnlab's studies, whose results lie in "
            "the folder of that name; give your file another name"
        )
    return path
