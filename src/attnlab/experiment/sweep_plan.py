"""The plan of a multirun: every point is checked before the first job starts."""

from __future__ import annotations

import logging
import math
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from attnlab.config.identity import config_digest, experiment_identity
from attnlab.config.names import setting_name
from attnlab.errors import ExperimentError, masked_values
from attnlab.experiment.composition import check
from attnlab.experiment.grid import check_grid, grid, last_of_each_key, values_of
from attnlab.experiment.hydra_config import compose_in_command
from attnlab.experiment.hydra_job import config_options
from attnlab.experiment.planned_search import SEED, PlannedSearch, planned_search
from attnlab.experiment.point import TRAIN_SOURCES
from attnlab.experiment.sweep_checks import (
    check_launcher_of_search,
    check_points_are_known,
    check_search,
    check_settings_have_effect,
    check_study,
    warn_of_jobs_without_gpus,
)
from attnlab.runs.mlflow_variables import environment_note
from attnlab.runs.ray_jobs import check_ray
from attnlab.runs.shared_views import View
from attnlab.runs.sweep_leader import lead_sweep
from attnlab.runs.sweep_points import combined, key_of, read_points, varied_keys
from attnlab.runs.sweep_record import SweepRecord
from attnlab.runs.sweep_settings import JobProcesses, job_processes
from attnlab.tasks.task import Experiment

# Of a larger grid each value is checked once, and not all combinations.
LARGEST_CHECKED_GRID = 64
# What changes nothing of what the jobs find.
NOT_OF_THE_IDENTITY = (
    "tracking",
    "loggers",
    "paths",
    "launcher",
    "rerun",
    "dry_run",
    "save_every_minutes",
)
# Loggers of Hydra's launchers, which name each job when it starts. A sweep prints its own lines.
_LAUNCHERS = (
    "hydra",
    "hydra_plugins.hydra_joblib_launcher",
    "hydra_plugins.hydra_submitit_launcher",
)


@dataclass(frozen=True)
class SweepPlan:
    """What a multirun is about to do.

    overrides: the command's.
    shard: the part of the points that this command takes, such as `3/8`; None for all.
    listed: the overrides of each point of a file; one point without any where there is no file.
    varies: the keys that differ from point to point.
    points: how many there will be.
    processes: how the jobs run.
    experiments: the checked points: all of a small grid, else each value once; of ranges the ends.
    search: of Optuna; None for a sweep whose points are known.
    options: the command's arguments that say where the configs are.
    verbose: `hydra.verbose`, true for all loggers, or the names of some.
    """

    overrides: list[str]
    shard: str | None
    listed: list[list[str]]
    varies: list[str]
    points: int
    processes: JobProcesses
    experiments: list[Experiment]
    search: PlannedSearch | None
    options: list[str]
    verbose: bool | list[str]

    @classmethod
    def of(cls, config: DictConfig, name: str | None) -> SweepPlan:
        """The plan of a composed multirun.

        Raises ExperimentError with every problem of every point.
        """
        hydra = config.hydra
        # As written: `${oc.env:NAME}` must not become its value, which would be written down.
        given: Any = OmegaConf.to_container(hydra.overrides, resolve=False)
        sweeper: Any = OmegaConf.to_container(hydra.sweeper, resolve=False)
        check_points_are_known(config, sweeper)
        check_settings_have_effect(config, given)

        parser = OverridesParser.create(GlobalHydra.instance().config_loader())
        of_sweeper = sweeper.get("params") or {}
        written_in_sweeper = [f"{key}={value}" for key, value in of_sweeper.items()]
        parsed = parser.parse_overrides([*written_in_sweeper, *given["task"]])
        counted = last_of_each_key(parsed)
        values = [values_of(override) for override in counted]
        listed = _listed_points(parser, hydra.sweeper.get("listed"))
        is_search = str(sweeper.get("_target_")).endswith(".OptunaSweeper")
        if is_search:
            check_search(sweeper, parsed)
            check_study(config)
            check_launcher_of_search(hydra)
        else:
            check_grid(counted)

        experiments = _checked(_points(values, listed), given["hydra"], name)
        warn_of_jobs_without_gpus(hydra.launcher, experiments)
        varies = varied_keys(listed)
        varies += [override.key_or_group for override in counted if override.is_sweep_override()]
        points = int(hydra.sweeper.get("n_trials") or len(grid(values, listed)))
        search = None
        if is_search:
            search = planned_search(hydra.sweeper, parsed, experiments[0].config["seed"])
            points = search.trials * search.seeds
            varies += [SEED] if search.seeds > 1 else []
        return cls(
            overrides=[text for text in given["task"] if not text.startswith("sweep.shard=")],
            shard=OmegaConf.select(config, "sweep.shard"),
            listed=listed,
            varies=list(dict.fromkeys(varies)),
            points=points,
            processes=job_processes(hydra.launcher, points),
            experiments=experiments,
            search=search,
            options=config_options(hydra),
            verbose=_verbose(hydra.verbose),
        )

    @property
    def identity(self) -> str:
        """The same for the same sweep: more trials go on from those that are there."""
        of_points = set()
        for experiment in self.experiments:
            sources = experiment.sources(TRAIN_SOURCES)
            sections = _sections_of_identity(experiment.values)
            of_points.add(experiment_identity(sections, data_digest="", sources=sources))
        # In the order of the command, which numbers the points. All others are in the points.
        keys = set(self.varies) - set(NOT_OF_THE_IDENTITY)
        chosen = []
        for override in self.overrides:
            if key_of(override) in keys:
                chosen.append(override)
        named: dict[str, Any] = {"points": sorted(of_points), "overrides": chosen}
        if any(self.listed):
            named["listed"] = self.listed
        if self.search is not None:
            # Trials in memory and trials in a storage are numbered in other ways.
            named["search"] = {
                "seeds": self.search.seeds,
                "study": self.search.study,
                "is_stored": self.search.storage is not None,
            }
        return config_digest(named)[:16]

    @property
    def view(self) -> View | None:
        """The view of the task of all points; None where they are of several."""
        names = {experiment.task.name for experiment in self.experiments}
        return self.experiments[0].task.view if len(names) == 1 else None

    @property
    def main_metrics(self) -> list[str]:
        """The metrics that a person looks at first, of any point."""
        found: dict[str, None] = {}
        for experiment in self.experiments:
            found |= dict.fromkeys(experiment.main_metrics)
        return list(found)

    def lead(self) -> AbstractContextManager[Any]:
        """Lead the sweep.

        Raises ExperimentError where a point cannot run in a sweep, or not on this machine, or the
        launcher lacks what it needs.
        """
        first = self.experiments[0]
        if self.processes.kind == "slurm" and shutil.which("srun") is None:
            raise ExperimentError(
                "launcher: there is no Slurm on this machine; start the sweep on the cluster"
            )
        if self.processes.kind == "ray":
            check_ray(self.processes.address)
        for experiment in self.experiments:
            experiment.hardware.check_sweep()
            if self.processes.on_this_machine:
                experiment.hardware.check_available()
        note = environment_note(first.config["tracking"])
        if note:
            print(note, file=sys.stderr)
        record = SweepRecord(
            identity=self.identity,
            name=" × ".join(setting_name(key) for key in self.varies) or "one point",
            varies=self.varies,
            overrides=masked_values(self.overrides),
            options=masked_values(self.options),
            points=self.points,
            run_id=None,
            started=0.0,
            main_metrics=self.main_metrics,
            is_search=self.search is not None,
        )
        is_shared = self.search is not None and self.search.storage is not None
        if self.search is not None and is_shared:
            from attnlab.runs.search_storage import open_storage  # imports Optuna

            open_storage(self.search.storage)
        self._quieten_launchers()
        return lead_sweep(
            record,
            first.tracking,
            first.paths.runs_folder,
            self.processes,
            self.view,
            self.shard,
            is_shared,
        )

    def _quieten_launchers(self) -> None:
        """Hide what the launchers log of each job, but for what `hydra.verbose` asks for."""
        # It writes its warnings itself, and so they would be printed twice.
        logging.getLogger("submitit").propagate = False
        if self.verbose is True:
            return
        asked_for = self.verbose or []
        for name in _LAUNCHERS:
            if name not in asked_for:
                logging.getLogger(name).setLevel(logging.WARNING)


def _checked(
    points: Sequence[Sequence[str]], of_hydra: Sequence[str], name: str | None
) -> list[Experiment]:
    """The experiments of these points, which have the overrides of Hydra, too.

    name: of the config.

    Raises ExperimentError with every problem of every point.
    """
    experiments: list[Experiment] = []
    problems: list[str] = []
    for point in points:
        try:
            experiments.append(check(compose_in_command([*of_hydra, *point], name)))
        except ExperimentError as error:
            problems += error.problems
    if problems:
        raise ExperimentError(list(dict.fromkeys(problems)))
    return experiments


def _sections_of_identity(values: dict[str, Any]) -> dict[str, Any]:
    """The sections of a point that decide what its job finds.

    How many trials a search has decides how many points there are, and nothing of each; which part
    of them a command takes is no part of the sweep, nor where the trials are kept.
    """
    deciding = {}
    for name, section in values.items():
        if name not in NOT_OF_THE_IDENTITY:
            deciding[name] = section
    deciding["sweep"] = dict(values["sweep"])
    for name in ("trials", "shard", "storage"):
        deciding["sweep"].pop(name, None)
    return deciding


def _verbose(value: Any) -> bool | list[str]:
    """`hydra.verbose`, of which one name is a list of one."""
    if isinstance(value, bool):
        return value
    return [value] if isinstance(value, str) else list(value)


def _listed_points(parser: OverridesParser, path: str | None) -> list[list[str]]:
    """The points of a file; without one a single point, which overrides nothing.

    Raises ExperimentError where a point is itself a sweep.
    """
    if path is None:
        return [[]]
    listed = read_points(path)
    problems = []
    for number, point in enumerate(listed, start=1):
        for override in parser.parse_overrides(point):
            if override.is_sweep_override():
                problems.append(
                    f"sweep.points: entry {number} of {path} must give each setting one value, "
                    f"got {override.input_line}; quotes keep a comma inside of a value"
                )
    if problems:
        raise ExperimentError(problems)
    return listed


def _points(values: list[list[str]], listed: list[list[str]]) -> list[list[str]]:
    """The points to check, given the values of each override.

    These are all combinations of a small grid. Of a larger one, each value, and each point of a
    file, is combined with the first value of every other override.
    """
    if len(listed) * math.prod(map(len, values)) <= LARGEST_CHECKED_GRID:
        return grid(values, listed)

    first = [choices[0] for choices in values]
    others = []
    for index, choices in enumerate(values):
        for choice in choices[1:]:
            point = list(first)
            point[index] = choice
            others.append(point)
    return [*combined(listed, [first]), *combined(listed[:1], others)]
