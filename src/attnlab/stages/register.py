"""The command `pipelines/register.py`: the model of a run, or of the best run of a sweep, in MLflow's registry."""

from __future__ import annotations

from attnlab.errors import ExperimentError
from attnlab.experiment.command_settings import RegisterSettings
from attnlab.sweeps.record import find_sweep, ranking
from attnlab.tracking.run_folder import read_uploaded
from attnlab.tracking.stored_runs import StoredRuns


def best_of_sweep(settings: RegisterSettings, wanted: str) -> tuple[str, str]:
    """(name, MLflow run id) of the finished job with the best validation value; of equal ones the first.

    The run is the one that trained: points that differ in the search alone share its model, and have runs without one.
    """
    folder = find_sweep(settings.runs_folder, wanted)
    for ranked in ranking(folder.jobs(), settings.runs_folder):
        uploaded = read_uploaded(settings.runs_folder / "points" / str(ranked.job.identity))
        if uploaded is not None:
            return ranked.job.name, uploaded.run_id
    raise ExperimentError(f"sweep: no job of {folder.path.name} is finished and tracked")


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
