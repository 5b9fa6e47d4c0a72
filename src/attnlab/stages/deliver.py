"""The stage `pipelines/deliver.py`: upload what runs could not, because their tracker was away."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from attnlab.errors import ExperimentError
from attnlab.experiment.command_settings import DeliverSettings
from attnlab.tracking.run import Run
from attnlab.tracking.run_folder import places_of_runs
from attnlab.tracking.settings import MlflowTracking
from attnlab.tracking.sync import sync


@dataclass
class Deliveries:
    """How many runs MLflow now has whole, which of them other processes work on, and why MLflow lacks the others."""

    uploaded: int = 0
    busy: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def deliver(tracking: MlflowTracking, runs_folder: Path) -> Deliveries:
    """Upload all pending runs; one that cannot be uploaded does not hold up the others."""
    made, connection = Deliveries(), tracking.connection(runs_folder)
    for home in sorted([*runs_folder.glob("points/*/"), *runs_folder.glob("sweeps/*/")]):
        for place in places_of_runs(home):
            name = place.relative_to(runs_folder).as_posix()
            try:
                run = Run.read(place)
                # MLflow knows that a run goes on which it had when the run started.
                if run is None or not (run.pending or (run.state.status is None and run.run_id is None)):
                    continue
                with ExitStack() as held:
                    for each in {home, place}:  # an evaluation with another search has a lock of its own
                        held.enter_context(FileLock(each / "lock").acquire(timeout=0))
                    run = Run.read(place)  # whoever worked on it may have uploaded it
                    if run is None or not run.pending:
                        continue
                    try:
                        connection.open()
                    except ExperimentError as error:
                        made.problems += error.problems  # so it would be for all others
                        return made
                    problem = sync(run, connection)
                    if problem is not None:
                        raise ExperimentError(f"{problem}; give the command again")
            except Timeout:
                made.busy.append(name)
            except ExperimentError as error:
                made.problems += [f"{name}: {problem}" for problem in error.problems]
            else:
                print(f"{name}: uploaded")
                made.uploaded += 1
    return made


def main(settings: DeliverSettings) -> None:
    made = deliver(settings.tracking, settings.runs_folder)
    for name in made.busy:
        print(f"{name}: a process still works on it; give the command again when that has ended")
    if made.problems:
        raise ExperimentError(made.problems)
    if made.uploaded or not made.busy:
        print(f"{made.uploaded} run(s) uploaded" if made.uploaded else "no run is pending")
