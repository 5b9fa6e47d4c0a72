"""The command `pipelines/register.py`: the model of a run, or of the best run of a sweep, in MLflow's registry."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from attnlab.errors import ExperimentError
from attnlab.experiment.console import Settings, read_settings
from attnlab.experiment.point import read_done


@dataclass
class RegisterSettings(Settings):
    """
    sweep: `last`, or a sweep's identity, or the beginning of one: its best run by what training monitored.
    run: an MLflow run id. Exactly one of sweep and run is given.
    name: of the registered model.
    alias: the version that is found under it.
    """

    sweep: str | None = None
    run: str | None = None
    name: str = "attnlab"
    alias: str = "champion"

    def problems(self) -> list[str]:
        from attnlab.tracking.settings import MlflowTracking

        problems = super().problems()
        if not re.fullmatch(r"[^/:]{1,250}", self.name):
            problems.append(f"name must be 1 to 250 characters without / and :, got {self.name!r}")
        if not re.fullmatch(r"(?!latest$|v\d+$)[A-Za-z_][\w\-]{0,249}", self.alias):
            problems.append(
                f"alias must be a word such as champion, and not read as a version (latest, v3), got {self.alias!r}"
            )
        if bool(self.sweep) == bool(self.run):
            problems.append("give exactly one of sweep and run, such as sweep=last")
        if not isinstance(self.tracking, MlflowTracking):
            problems.append("tracking must be mlflow, whose registry this is about")
        return problems


def best_of_sweep(settings: RegisterSettings, wanted: str) -> tuple[str, str]:
    """(name, MLflow run id) of the finished job with the best validation value; of equal ones the first.

    The run is the one that trained: points that differ in the search alone share its model, and have runs without one.
    """
    from attnlab.sweeps.find import find_sweep
    from attnlab.tracking.run_folder import run_of

    folder = find_sweep(settings.runs_folder, wanted)
    judged: list[tuple[float, str, str]] = []
    for job in folder.jobs():
        point = settings.runs_folder / "points" / str(job.identity)
        run_id = run_of(point)
        if job.status != "finished" or run_id is None:
            continue
        found = read_done(point)
        if found["quality"] is not None:
            judged.append((found["quality"] if found["higher_is_better"] else -found["quality"], job.name, run_id))
    if not judged:
        raise ExperimentError(f"sweep: no job of {folder.path.name} is finished and tracked")
    _, name, run_id = max(judged, key=lambda each: each[0])
    return name, run_id


def main() -> None:
    settings = read_settings(RegisterSettings, sys.argv[1:])
    from attnlab.tracking.models import register

    run_id = settings.run
    if settings.sweep is not None:
        name, run_id = best_of_sweep(settings, settings.sweep)
        print(f"best by validation: {name}")
    assert run_id is not None
    found = register(settings.tracking.connection(settings.runs_folder), run_id, settings.name, settings.alias)
    done = "registered" if found.new else "was registered before"
    print(f"run {run_id} {done} as version {found.version} of {found.name}: {found.uri}")
