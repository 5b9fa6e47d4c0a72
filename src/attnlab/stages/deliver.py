"""Deliver: what runs left untold because the tracker was not there.

    python pipelines/deliver.py
    python pipelines/deliver.py tracking.uri=http://localhost:5000

Runs that go on at this moment deliver by themselves; those that were killed deliver when their command is given again.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.errors import ExperimentError
from attnlab.experiment.console import Settings, read_settings

if TYPE_CHECKING:
    from attnlab.tracking.settings import MlflowTracking


@dataclass
class DeliverSettings(Settings):
    def problems(self) -> list[str]:
        from attnlab.tracking.settings import MlflowTracking

        is_mlflow = isinstance(self.tracking, MlflowTracking)
        return [*super().problems(), *([] if is_mlflow else ["tracking must be mlflow, which runs are delivered to"])]


@dataclass
class Deliveries:
    """
    told: how many runs were told to the end.
    busy: those that somebody is at.
    problems: a sentence for each run that was not told to the end.
    """

    told: int = 0
    busy: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def deliver(tracking: MlflowTracking, runs_folder: Path) -> Deliveries:
    """Tell all that waits; a run that cannot be told keeps no other one from it."""
    from attnlab.tracking.kept_run import kept_folders, places

    made = Deliveries()
    for place in places(runs_folder):
        finish_what_was_begun(place)
        for folder in kept_folders(place):
            name = folder.relative_to(runs_folder).as_posix()
            try:
                done = deliver_run(tracking, runs_folder, place, folder)
            except UnreachableError as error:
                made.problems += error.problems  # so it would be for all others
                return made
            except BusyError:
                made.busy.append(name)
            except ExperimentError as error:
                made.problems += [f"{name}: {problem}" for problem in error.problems]
            else:
                if done is not None:
                    print(f"{name}: {'delivered' if done else 'not all of it could be delivered'}")
                if done is False:
                    made.problems.append(f"{name} could not be delivered whole; give the command again")
                made.told += bool(done)
    return made


def finish_what_was_begun(place: Path) -> None:
    """See `finish_moves`; where a process is at it, that one does."""
    from filelock import FileLock, Timeout

    from attnlab.tracking.set_aside import finish_moves, moves_to_finish

    if moves_to_finish(place):
        with suppress(Timeout), FileLock(place / "lock").acquire(timeout=0):
            finish_moves(place)


def deliver_run(tracking: MlflowTracking, runs_folder: Path, place: Path, folder: Path) -> bool | None:
    """Whether a run was told to the end; None where nothing of it waits.

    place: the folder of its experiment or sweep.

    Raises:
        BusyError: a process is at it.
        UnreachableError: the tracker is not there.
        ExperimentError: it cannot be told.
    """
    from filelock import FileLock, Timeout

    from attnlab.tracking.kept_run import read
    from attnlab.tracking.run import RUN_FILE

    kept = read(folder)
    # Of one that goes on the tracker knows, where it was there when it started.
    if kept is None or not (kept.waits or (kept.status is None and not (folder / RUN_FILE).is_file())):
        return None
    try:
        with ExitStack() as held:
            for each in {place, folder}:  # an evaluation with another search has a lock of its own
                held.enter_context(FileLock(each / "lock").acquire(timeout=0))
            kept = read(folder)  # whoever was at it may have told it
            if kept is None or not kept.waits:
                return None
            from attnlab.tracking.database import open_store
            from attnlab.tracking.past_run import tell
            from attnlab.tracking.set_aside import remove_told

            try:
                open_store(tracking.uri, tracking.experiment, runs_folder)
            except ExperimentError as error:
                raise UnreachableError(error.problems) from None
            done = tell(tracking, runs_folder, folder, kept)
            if done:
                remove_told(folder)
            return done
    except Timeout:
        raise BusyError from None


class UnreachableError(ExperimentError):
    """The tracker is not there."""


class BusyError(Exception):
    """A process is at the experiment or the sweep."""


def main() -> None:
    settings = read_settings(DeliverSettings, sys.argv[1:])
    made = deliver(settings.tracking, settings.runs_folder)
    for name in made.busy:
        print(f"{name}: a process is still at it; give the command again when that has ended")
    if made.problems:
        raise ExperimentError(made.problems)
    if made.told or not made.busy:
        print(f"{made.told} run(s) delivered" if made.told else "nothing waits to be delivered")
