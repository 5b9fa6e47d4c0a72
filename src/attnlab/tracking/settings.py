"""What tracking can be told. Free of mlflow: composing an experiment costs no import of it."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import NonNegativeInt

from attnlab.errors import ExperimentError, has_control_character
from attnlab.tracking.address import checked_address, masked, where_to_look
from attnlab.tracking.run import Run, Status, UntrackedRun


@dataclass(frozen=True)
class RunRecord:
    """What there is to know of a run when it starts.

    config: the whole resolved config; environment interpolations stay unresolved, so that no secret is in it.
    identity: the experiment's identity.
    data_digest: SHA-256 of the prepared data.
    data_source: where the prepared data lie.
    data_facts: a few figures about them (sizes, lengths), shown beside the dataset.
    data_columns: what a row of them holds.
    tags: more tags, which always tell the present state; a sweep puts `mlflow.parentRunId` here.
    name: of the run, where tracking.run_name gives none; None means default_name.
    default_name: of a run that neither names; None makes one of the choices.
    adopt: a run that failed before its experiment had a folder; it becomes this experiment's, if that has none.
    """

    config: Mapping[str, Any]
    identity: str
    data_digest: str
    data_source: str = ""
    data_facts: Mapping[str, Any] = field(default_factory=dict)
    data_columns: tuple[str, ...] = ("source", "target")
    tags: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    default_name: str | None = None
    adopt: str | None = None


class Tracking(ABC):
    """Whether and where runs are tracked, and how many heat maps are drawn for it."""

    heat_map_sentences: int
    keep_heat_maps: int

    @abstractmethod
    def start(self, runs_folder: Path, point: Path, record: RunRecord) -> Run:
        """Start the run of the experiment whose state lies in `point`, or reopen the one started before.

        Raises:
            ExperimentError: the tracker cannot be reached or refuses.
        """

    @abstractmethod
    def check_start(self, runs_folder: Path, of_sweep: bool = False) -> None:
        """Raise ExperimentError where `start`, or `start_sweep`, would now: before an earlier run is cleared away."""

    def start_sweep(self, runs_folder: Path, folder: Path, record: RunRecord) -> Run:
        """Start or reopen the run that a sweep's runs are children of; its state lies in `folder`."""
        return self.start(runs_folder, folder, record)

    def of_a_begun_run(self) -> Tracking:
        """The same for what follows in a run that has begun: a tracker that went away since is a warning."""
        return self

    @abstractmethod
    def end(self, runs_folder: Path, run_id: str, status: Status, error: str) -> None:
        """Close a run whose process is gone; a tracker that cannot be reached is a warning."""

    @abstractmethod
    def where_to_look(self, runs_folder: Path) -> str:
        """What a person types and opens to see the runs, one or two lines."""


@dataclass(frozen=True)
class MlflowTracking(Tracking):
    """Runs go to MLflow.

    uri: `http(s)://...` of a server, `sqlite:///<file>.db`, `postgresql+psycopg2://...` or `mysql+pymysql://...`;
        null is `mlflow.db` in the runs folder. A relative sqlite path counts from the runs folder's parent.
    experiment: MLflow's name for the group of runs.
    run_name: null makes one of the choices, as `bahdanau · dates · seed 1`.
    system_metrics: sample processor, memory, disk and network.
    heat_map_sentences: validation sentences whose attention is drawn at each validation; 0 draws none.
    keep_heat_maps: validations whose heat maps stay: the newest ones, and beside them the best one.
    log_model: log the trained model in the end.
    when_unreachable: what becomes of a training whose tracker is not there when it starts. `refuse` ends it at once;
        `warn` trains, and pipelines/deliver.py tells later. A sweep is refused in any case: its runs want a parent.
    """

    uri: str | None
    experiment: str
    run_name: str | None
    system_metrics: bool
    heat_map_sentences: NonNegativeInt
    keep_heat_maps: NonNegativeInt
    log_model: bool
    when_unreachable: Literal["refuse", "warn"]

    def __post_init__(self) -> None:
        if self.uri is not None:
            checked_address(self.uri)
        if not self.experiment.strip() or len(self.experiment) > 500 or has_control_character(self.experiment):
            raise ValueError("experiment must be a name of 1 to 500 characters, on one line")
        if masked(self.experiment) != self.experiment:
            # Hidden it would be no name any more, under which runs are found.
            raise ValueError("experiment must be a name without a secret in it, for MLflow shows it; give another name")
        if self.run_name is None:
            return
        if not 0 < len(self.run_name.strip()) <= 250 or has_control_character(self.run_name):
            raise ValueError("run_name must be null or a name of 1 to 250 characters, on one line")

    def start(self, runs_folder: Path, point: Path, record: RunRecord) -> Run:
        from attnlab.tracking.kept_run import beginning, keep
        from attnlab.tracking.tracked_run import TrackedRun  # costs an import of mlflow
        from attnlab.tracking.waiting_run import WaitingRun

        try:
            run = TrackedRun.start(self, runs_folder, point, record)
        except ExperimentError as error:
            if self.when_unreachable == "refuse":
                raise
            print(f"warning: {error}; it goes on without, and what it finds is kept on disk", file=sys.stderr)
            return WaitingRun(point, record, self.uri or "")
        keep(point, **beginning(record))
        return run

    def of_a_begun_run(self) -> Tracking:
        return replace(self, when_unreachable="warn")

    def check_start(self, runs_folder: Path, of_sweep: bool = False) -> None:
        from attnlab.tracking.database import open_store

        if of_sweep or self.when_unreachable == "refuse":
            open_store(self.uri, self.experiment, runs_folder)

    def start_sweep(self, runs_folder: Path, folder: Path, record: RunRecord) -> Run:
        own = {"run_name": None, "system_metrics": False, "log_model": False, "when_unreachable": "refuse"}
        return replace(self, **own).start(runs_folder, folder, record)  # type: ignore[arg-type]

    def end(self, runs_folder: Path, run_id: str, status: Status, error: str) -> None:
        from attnlab.tracking.past_run import end_run

        end_run(self, runs_folder, run_id, status, error)

    def where_to_look(self, runs_folder: Path) -> str:
        return where_to_look(self.uri, self.experiment, runs_folder)


@dataclass(frozen=True)
class NoTracking(Tracking):
    """Nothing is tracked; the metrics still stand in the spool."""

    heat_map_sentences = 0
    keep_heat_maps = 0

    def start(self, runs_folder: Path, point: Path, record: RunRecord) -> Run:
        return UntrackedRun()

    def check_start(self, runs_folder: Path, of_sweep: bool = False) -> None:
        pass

    def end(self, runs_folder: Path, run_id: str, status: Status, error: str) -> None:
        pass

    def where_to_look(self, runs_folder: Path) -> str:
        return "tracking is off (tracking=none)"
