"""Tracking settings. Free of mlflow: composing an experiment does not import it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import NonNegativeInt

from attnlab.errors import ExperimentError
from attnlab.tracking.address import checked_address, where_to_look
from attnlab.tracking.archive import archive, close_killed
from attnlab.tracking.run_folder import SYSTEM_METRICS, Run, RunRecord, UntrackedRun

if TYPE_CHECKING:
    from attnlab.tracking.connection import Connection


class Tracking(ABC):
    """Whether and where runs are tracked, and how many heat maps are drawn for it."""

    heat_map_sentences: int
    keep_heat_maps: int

    @abstractmethod
    def start(self, runs_folder: Path, place: Path, record: RunRecord) -> Run:
        """Start the run of the experiment or evaluation in the folder `place`, or open it again.

        Raises:
            ExperimentError: the tracker cannot be reached or refuses, and `when_unreachable` is `refuse`.
        """

    @abstractmethod
    def check_start(self, runs_folder: Path, of_sweep: bool = False) -> None:
        """Raise ExperimentError where `start`, or `start_sweep`, would now: before an earlier run is cleared away."""

    def start_sweep(self, runs_folder: Path, place: Path, record: RunRecord) -> Run:
        """Start or open again the run that a sweep's runs are children of."""
        return self.start(runs_folder, place, record)

    def of_a_begun_run(self) -> Tracking:
        """The same for what follows in a run that has begun: a tracker that went away since is a warning."""
        return self

    @abstractmethod
    def archive(self, runs_folder: Path, place: Path) -> None:
        """Make room for new runs in a folder: see `attnlab.tracking.archive`."""

    @abstractmethod
    def close(self, runs_folder: Path, place: Path, error: str) -> None:
        """Close a run whose process was killed; a tracker that cannot be reached is a warning."""

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
    when_unreachable: `refuse` ends a command at once whose tracker cannot be reached when it starts; `warn` trains, and
        uploads the run when the tracker is back. A sweep is refused in any case: its runs need a parent.
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
        if not self.experiment.strip() or len(self.experiment) > 500:
            raise ValueError("experiment must be a name of 1 to 500 characters")
        if self.run_name is not None and not 0 < len(self.run_name.strip()) <= 250:
            raise ValueError("run_name must be null or a name of 1 to 250 characters")

    def connection(self, runs_folder: Path) -> Connection:
        """To the tracker; nothing is sent yet."""
        from attnlab.tracking.connection import Connection  # costs an import of mlflow

        return Connection(self.uri, self.experiment, runs_folder)

    def start(self, runs_folder: Path, place: Path, record: RunRecord) -> Run:
        from attnlab.tracking.origin import origin_tags
        from attnlab.tracking.sync import sync

        connection = self.connection(runs_folder)
        if self.when_unreachable == "refuse":
            connection.open()
        # Where a sweep names its points, one name for all of them would not distinguish them.
        name = " · ".join(filter(None, (self.run_name, record.name))) or None
        named = replace(record, name=name)
        run = Run.start(place, named, origin_tags, self.log_model, lambda each: sync(each, connection))
        run.sync(run.state.safe_offset)
        if run.run_id is None and self.when_unreachable == "refuse":
            raise ExperimentError("tracking.uri: the run could not be created; correct it, or choose tracking=none")
        if self.system_metrics:
            from attnlab.tracking.system_metrics import SystemMetrics

            run.sample(SystemMetrics(run.folder / SYSTEM_METRICS))
        return run

    def of_a_begun_run(self) -> Tracking:
        return replace(self, when_unreachable="warn")

    def check_start(self, runs_folder: Path, of_sweep: bool = False) -> None:
        if of_sweep or self.when_unreachable == "refuse":
            self.connection(runs_folder).open()

    def start_sweep(self, runs_folder: Path, place: Path, record: RunRecord) -> Run:
        own = {"run_name": None, "system_metrics": False, "log_model": False, "when_unreachable": "refuse"}
        return replace(self, **own).start(runs_folder, place, record)  # type: ignore[arg-type]

    def archive(self, runs_folder: Path, place: Path) -> None:
        from attnlab.tracking.sync import sync

        connection = self.connection(runs_folder)
        archive(place, lambda run: sync(run, connection))

    def close(self, runs_folder: Path, place: Path, error: str) -> None:
        from attnlab.tracking.sync import sync

        connection = self.connection(runs_folder)
        close_killed(place, error, lambda run: sync(run, connection))

    def where_to_look(self, runs_folder: Path) -> str:
        return where_to_look(self.uri, self.experiment, runs_folder)


@dataclass(frozen=True)
class NoTracking(Tracking):
    """Nothing is tracked; the metrics still stand in the spool."""

    heat_map_sentences = 0
    keep_heat_maps = 0

    def start(self, runs_folder: Path, place: Path, record: RunRecord) -> Run:
        return UntrackedRun()

    def check_start(self, runs_folder: Path, of_sweep: bool = False) -> None:
        pass

    def archive(self, runs_folder: Path, place: Path) -> None:
        archive(place)

    def close(self, runs_folder: Path, place: Path, error: str) -> None:
        pass

    def where_to_look(self, runs_folder: Path) -> str:
        return "tracking is off (tracking=none)"
