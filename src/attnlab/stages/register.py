"""Register: the model of a run, or of the best run of a sweep, under a name and an alias in MLflow's model registry.

    python pipelines/register.py sweep=last
    python pipelines/register.py run=<MLflow run id> name=dates alias=champion

The best run of a sweep is the one with the best validation value of what training monitored: a model that was chosen by
its test score could not be judged by it any more. Afterwards, from anywhere:

    import mlflow
    mlflow.set_tracking_uri("sqlite:///runs/mlflow.db")
    print(mlflow.pyfunc.load_model("models:/attnlab@champion").predict(["Wednesday, January 13, 2010"]))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from attnlab.errors import ExperimentError
from attnlab.experiment.composed import CONF
from attnlab.experiment.point import read_done
from attnlab.experiment.settings_file import given_arguments, settings_of

if TYPE_CHECKING:
    from attnlab.tracking.settings import MlflowTracking

FILE = CONF / "register.yaml"
AS_WRITTEN = ("sweep", "run", "name", "alias")


@dataclass(frozen=True)
class RegisterSettings:
    """What conf/register.yaml says. Of sweep and run one is there."""

    sweep: str | None
    run: str | None
    name: str
    alias: str
    paths: dict[Literal["runs"], str]
    tracking: MlflowTracking

    @property
    def runs_folder(self) -> Path:
        from attnlab.config.paths import runs_folder

        return runs_folder(self.paths["runs"])


def read_settings(arguments: Sequence[str]) -> RegisterSettings:
    """`key=value` arguments, bound to what each setting must be; raises ExperimentError with every problem."""
    from pydantic import Field

    from attnlab.config.binding import bind_sections
    from attnlab.config.paths import NotEmpty
    from attnlab.tracking.settings import MlflowTracking, Tracking

    # What MLflow takes: no slash and no colon in a name.
    name = Annotated[str, Field(pattern=r"^[^/:]+$", max_length=250)]
    annotations: dict[str, Any] = {
        "sweep": NotEmpty | None,
        "run": NotEmpty | None,
        "name": name,
        "alias": Annotated[str, Field(pattern=r"^[A-Za-z_][\w\-]*$", max_length=250)],
        "paths": dict[Literal["runs"], NotEmpty],
        "tracking": Tracking,
    }
    settings = RegisterSettings(**bind_sections(settings_of(FILE, arguments, AS_WRITTEN), annotations))
    if settings.alias == "latest" or re.fullmatch(r"v\d+", settings.alias):
        raise ExperimentError(
            f"alias must not read as a version, got {settings.alias!r}; choose a word such as champion"
        )
    if (settings.sweep is None) == (settings.run is None):
        raise ExperimentError("give exactly one of sweep and run, such as sweep=last")
    if not isinstance(settings.tracking, MlflowTracking):
        raise ExperimentError("tracking must be mlflow, whose registry this is about")
    return settings


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
    settings = read_settings(given_arguments(__doc__, FILE))
    from attnlab.tracking.models import register

    run_id = settings.run
    if settings.sweep is not None:
        name, run_id = best_of_sweep(settings, settings.sweep)
        print(f"best by validation: {name}")
    assert run_id is not None
    found = register(settings.tracking.connection(settings.runs_folder), run_id, settings.name, settings.alias)
    done = "registered" if found.new else "was registered before"
    print(f"run {run_id} {done} as version {found.version} of {found.name}: {found.uri}")
