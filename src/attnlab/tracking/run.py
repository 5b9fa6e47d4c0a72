"""What the pipelines may ask of a run, tracked or not. Free of mlflow."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from attnlab.errors import ExperimentError
from attnlab.files import read_own_json

Status = Literal["FINISHED", "FAILED", "KILLED"]


# In the experiment's state folder: which run is its own, and what was delivered to it.
RUN_FILE, DELIVERED = "mlflow.json", "delivered.json"
DONE = "done.json"  # there, its training is over
CONFIG_FILE = "config.yaml"  # among the artifacts of a run: its config as it was composed


class Run(ABC):
    """One run, open from `Tracking.start` to `finish`; as a context manager it always finishes itself.

    run_id: the tracker's name for it; None where nothing is tracked.
    outbox: what is put there comes among the run's artifacts, under the same relative path; None where
        nothing is tracked. Names that start with a dot are taken for unfinished.
    """

    run_id: str | None
    outbox: Path | None

    @abstractmethod
    def log_metrics(self, metrics: Mapping[str, float], step: int, epoch: int | None = None) -> None:
        """Metrics of after the training, such as those of the test split; logged again, they count once."""

    @abstractmethod
    def log_artifact(self, path: Path, folder: str = "") -> None:
        """A file, or a folder with all it holds, as artifact `folder/name`."""

    @abstractmethod
    def describe(self, text: str) -> None:
        """What a person should know of the run, in place of what was said before."""

    @abstractmethod
    def log_model(self, folder: Path) -> None:
        """The trained model, loadable from the tracker; nothing happens where it is logged already."""

    @abstractmethod
    def deliver(self, up_to: int | None = None) -> None:
        """Hand over what is new in the spool (to byte `up_to` at most) and in the outbox.

        Safe to call at any time and again. A tracker that cannot be reached is a warning; all is kept for the
        next call.
        """

    @abstractmethod
    def finish(self, status: Status = "FINISHED", error: str | None = None) -> None:
        """Deliver the rest and close the run; the second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            return self.finish("FINISHED")
        try:
            if isinstance(error, Exception):
                self.finish("FAILED", f"{type(error).__name__}: {error}")
            else:  # Ctrl-C, or a signal that became SystemExit
                self.finish("KILLED", type(error).__name__)
        except (OSError, ExperimentError) as another:
            # As where the disk is full: what ended the run is what shall be told.
            print(f"warning: how the run ended could not be kept: {another}", file=sys.stderr)


def run_of(point: Path) -> str | None:
    """The id of the run that an experiment's folder has in the tracker; raises ExperimentError for a damaged file."""
    path = point / RUN_FILE
    if not path.is_file():
        return None
    remedy = "remove it, and the experiment gets another run in the tracker"
    run_id = read_own_json(path, remedy).get("run_id")
    if not isinstance(run_id, str):
        raise ExperimentError(f"{path} names no run; {remedy}")
    return run_id


class UntrackedRun(Run):
    """Nothing is tracked."""

    run_id = None
    outbox = None

    def log_metrics(self, metrics: Mapping[str, float], step: int, epoch: int | None = None) -> None:
        pass

    def log_artifact(self, path: Path, folder: str = "") -> None:
        pass

    def describe(self, text: str) -> None:
        pass

    def log_model(self, folder: Path) -> None:
        pass

    def deliver(self, up_to: int | None = None) -> None:
        pass

    def finish(self, status: Status = "FINISHED", error: str | None = None) -> None:
        pass
