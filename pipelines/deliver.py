"""Deliver: what runs left untold because the tracker was not there.

    python pipelines/deliver.py
    python pipelines/deliver.py tracking.uri=http://localhost:5000

Runs that go on at this moment deliver by themselves; those that were killed deliver when their command is given again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from attnlab.composition.error import ExperimentError
from composed import CONF
from launch import mistakes_as_sentences
from settings_file import given_arguments, settings_of

FILE = CONF / "deliver.yaml"


def read_settings(arguments: Sequence[str]) -> dict[str, Any]:
    """`key=value` arguments, bound to what each setting must be; raises ExperimentError with every problem."""
    from attnlab.composition.binding import bind_sections
    from attnlab.composition.paths import NotEmpty
    from attnlab.tracking.settings import MlflowTracking, Tracking

    annotations = {"paths": dict[Literal["runs"], NotEmpty], "tracking": Tracking}
    settings = bind_sections(settings_of(FILE, arguments, ()), annotations)
    if not isinstance(settings["tracking"], MlflowTracking):
        raise ExperimentError("tracking must be mlflow, which the runs are delivered to")
    return settings


def deliver(tracking: Any, runs_folder: Path) -> tuple[int, int]:
    """How many runs were told to the end, and how many are still not."""
    from filelock import FileLock, Timeout

    from attnlab.tracking.kept_run import untold

    told = left = 0
    for folder, kept in untold(runs_folder):
        point = next(place for place in (folder, *folder.parents) if place.parent.name == "points")
        try:
            with FileLock(point / "lock").acquire(timeout=0):
                from attnlab.tracking.past_run import tell

                done = tell(tracking, runs_folder, folder, kept)
        except Timeout:
            continue  # its process delivers
        told, left = told + done, left + (not done)
        print(f"{folder.relative_to(runs_folder)}: {'delivered' if done else 'not all of it could be delivered'}")
    return told, left


def main() -> None:
    settings = read_settings(given_arguments(__doc__, FILE))
    from attnlab.composition.paths import runs_folder

    told, left = deliver(settings["tracking"], runs_folder(settings["paths"]["runs"]))
    if left:
        raise ExperimentError(f"{left} run(s) could not be delivered whole; give the command again")
    print(f"{told} run(s) delivered" if told else "nothing waits to be delivered")


if __name__ == "__main__":
    with mistakes_as_sentences():
        main()
