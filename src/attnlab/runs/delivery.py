"""Delivery of pending runs: upload what could not be, because MLflow was unreachable."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from filelock import Timeout

from attnlab.errors import ExperimentError
from attnlab.locks import lock
from attnlab.runs.run import Run
from attnlab.runs.run_folder import places_of_runs
from attnlab.runs.tracking import MlflowTracking
from attnlab.runs.upload import upload_run


def deliver(tracking: MlflowTracking, runs_folder: Path) -> tuple[int, list[str]]:
    """Upload all pending runs; one that cannot be uploaded does not hold up the others.

    Returns how many MLflow now has whole, and why it lacks the others. A run that a process works
    on is left to it.
    """
    connection = tracking.connection(runs_folder)
    uploaded = 0
    problems: list[str] = []
    is_busy = False
    homes = sorted([*runs_folder.glob("points/*/"), *runs_folder.glob("sweeps/*/")])
    for home, place in ((folder, place) for folder in homes for place in places_of_runs(folder)):
        name = place.relative_to(runs_folder).as_posix()
        try:
            with ExitStack() as held:
                # An evaluation with another search has a lock of its own
                for each in {home, place}:
                    held.enter_context(lock(each / "lock").acquire(timeout=0))
                run = Run.read(place)
                if run is None or not run.pending:
                    continue
                try:
                    connection.open()
                except ExperimentError as error:
                    return uploaded, [*problems, *error.problems]  # so it would be for all others
                problem = upload_run(run, connection)
                if problem is not None:
                    raise ExperimentError(problem)
        except Timeout:
            print(
                f"{name}: a process still works on it; give the command again when that has ended"
            )
            is_busy = True
        except ExperimentError as error:
            problems += [f"{name}: {each}" for each in error.problems]
        else:
            print(f"{name}: uploaded")
            uploaded += 1
    if uploaded or not (problems or is_busy):
        print(f"{uploaded} run(s) uploaded" if uploaded else "no run is pending")
    return uploaded, problems
