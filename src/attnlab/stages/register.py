"""The command `pipelines/register.py`: the model of a run, or of the best run of a sweep, in MLflow's registry."""

from __future__ import annotations

from attnlab.errors import ExperimentError
from attnlab.experiment.command_settings import RegisterSettings
from attnlab.experiment.point import read_done
from attnlab.sweeps.record import find_sweep
from attnlab.tracking.run_folder import read_uploaded
from attnlab.tracking.stored_runs import StoredRuns


def best_of_sweep(settings: RegisterSettings, wanted: str) -> tuple[str, str]:
    """(name, MLflow run id) of the finished job with the best validation value; of equal ones the first.

    The run is the one that trained: points that differ in the search alone share its model, and have runs without one.
    """
    folder = find_sweep(settings.runs_folder, wanted)
    judged: list[tuple[float, str, str]] = []
    for job in folder.jobs():
        point = settings.runs_folder / "points" / str(job.identity)
        uploaded = read_uploaded(point)
        if job.status != "finished" or uploaded is None:
            continue
        found = read_done(point)
        if found["quality"] is not None:
            sign = 1 if found["higher_is_better"] else -1
            judged.append((sign * found["quality"], job.name, uploaded.run_id))
    if not judged:
        raise ExperimentError(f"sweep: no job of {folder.path.name} is finished and tracked")
    _, name, run_id = max(judged, key=lambda each: each[0])
    return name, run_id


def main(settings: RegisterSettings) -> None:
    run_id = settings.run
    if settings.sweep is not None:
        name, run_id = best_of_sweep(settings, settings.sweep)
        print(f"best by validation: {name}")
    assert run_id is not None
    runs = StoredRuns(settings.tracking.connection(settings.runs_folder))
    version, is_new = runs.register(run_id, settings.name, settings.alias)
    done = "registered" if is_new else "was registered before"
    print(f"run {run_id} {done} as version {version} of {settings.name}: models:/{settings.name}@{settings.alias}")
