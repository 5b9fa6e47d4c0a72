"""What a multirun is about to do, known before its first job starts."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from attnlab.experiment.experiment import TRAIN_SOURCES, Experiment

# What changes nothing of what the jobs find.
NOT_OF_THE_IDENTITY = ("tracking", "paths", "launcher", "rerun", "save_every_minutes")


@dataclass(frozen=True)
class SweepPlan:
    """
    overrides: the command's.
    varies: the keys that differ from point to point.
    grid: as many points as all combinations make.
    experiments: those that were checked: all points of a small grid, else each value once; of ranges the ends.
    """

    overrides: list[str]
    varies: list[str]
    grid: int
    experiments: list[Experiment]

    @property
    def points(self) -> int:
        from attnlab.sweeps.settings import Optuna

        sweep = self.experiments[0].sweep
        return sweep.trials if isinstance(sweep, Optuna) else self.grid

    @property
    def identity(self) -> str:
        """The same for the same sweep: more trials go on from those that are there."""
        from attnlab.config.identity import config_digest, experiment_identity

        of_points = {
            experiment_identity(_deciding(experiment.values), "", experiment.sources(TRAIN_SOURCES))
            for experiment in self.experiments
        }
        # In the order of the command, which numbers the points; all others are in the points themselves.
        keys = {*self.varies} - set(NOT_OF_THE_IDENTITY)
        chosen = [text for text in self.overrides if text.partition("=")[0].lstrip("+~") in keys]
        return config_digest({"points": sorted(of_points), "overrides": chosen})[:16]

    def led(self) -> AbstractContextManager[Any]:
        """Lead the sweep; raises ExperimentError where a point cannot run in one, or not so many at a time."""
        from attnlab.errors import ExperimentError
        from attnlab.sweeps.launcher import Joblib, Slurm
        from attnlab.sweeps.leader import led
        from attnlab.sweeps.naming import short_key
        from attnlab.sweeps.record import SweepRecord
        from attnlab.tracking.address import told_overrides

        for experiment in self.experiments:
            try:
                experiment.hardware.check_sweep()
            except ValueError as error:
                raise ExperimentError(f"hardware.{error}") from error
        first = self.experiments[0]
        if isinstance(first.launcher, Slurm) and shutil.which("srun") is None:
            raise ExperimentError("launcher: there is no Slurm on this machine; start the sweep on the cluster")
        workers = first.launcher.workers
        if first.launcher.on_this_machine:
            for experiment in self.experiments:
                try:
                    experiment.hardware.check_available(workers)
                except ValueError as error:
                    raise ExperimentError(f"hardware.{error}") from error
        record = SweepRecord(
            identity=self.identity,
            name=" × ".join(short_key(key) for key in self.varies) or "one point",
            varies=self.varies,
            overrides=told_overrides(self.overrides),
            points=self.points,
            run_id=None,
            started=0.0,
            quiet=isinstance(first.launcher, Joblib),
        )
        where = first.paths.runs_folder, workers, first.launcher.on_this_machine
        return led(record, first.tracking, *where, anew=first.rerun)


def _deciding(values: dict[str, Any]) -> dict[str, Any]:
    deciding = {name: section for name, section in values.items() if name not in NOT_OF_THE_IDENTITY}
    sweep = {name: value for name, value in deciding["sweep"].items() if name != "trials"}
    return {**deciding, "sweep": sweep}
