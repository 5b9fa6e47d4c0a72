"""Tracking settings. Free of mlflow: composing an experiment does not import it."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import sqlite3
import sys
import urllib.parse
import urllib.request
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import NonNegativeInt

from attnlab.config.params import accepted_name, as_text, origin_tags
from attnlab.errors import ExperimentError, masked, masked_values
from attnlab.runs.mlflow_variables import check_address
from attnlab.runs.moved_store import (
    ARTIFACTS_NAME,
    DATABASE_NAME,
    follow_moved_folder,
    portable_address,
)
from attnlab.runs.run import InactiveRun, Run, Uploader, close_runs
from attnlab.runs.run_folder import REPORT, RunRecord, Uploaded
from attnlab.runs.shared_views import EXPERIMENTS_PAGE, View, charts_page, run_page
from attnlab.runs.sweep_record import SweepFolder
from attnlab.runs.sweep_verdicts import set_verdicts

if TYPE_CHECKING:
    from attnlab.runs.connection import Connection

DEFAULT_EXPERIMENT = "attnlab"
# MLflow's own variable for the port of its server, and the port without it.
PORT_VARIABLE, _DEFAULT_PORT = "MLFLOW_PORT", "5000"
LONGEST_NAME = 250  # MLflow's limit for the name of a run
_PATIENCE = 3.0  # seconds for a server to say which experiment has a name


class Tracking:
    """Settings of tracking: whether and where, and how many heat maps are drawn for it.

    This base class tracks nowhere.

    draws_pictures: whether validations draw what is uploaded; the maps are kept in any case.
    """

    heat_map_sentences: int
    draws_pictures: ClassVar[bool] = True

    def follow_moved_folder(self, runs_folder: Path) -> None:
        """Correct the tracker's database if the runs folder was moved or copied.

        Call it before anything in the folder is locked.

        Raises ExperimentError where that is impossible.
        """

    def start(
        self, runs_folder: Path, place: Path, record: RunRecord, nothing_new: bool = False
    ) -> Run:
        """Start the run of the experiment or evaluation in the folder `place`, or open it again.

        nothing_new: nothing will be logged that was not logged before, so that MLflow, whose import
            takes seconds, is needed only where something of the run is missing there.

        Raises ExperimentError where the tracker cannot be reached or refuses, and
        `when_unreachable` is `refuse`.
        """
        return InactiveRun()

    def for_sweep(self) -> Tracking:
        """The settings for the run of a sweep itself.

        That run exists before the runs of the points, which are its children.
        """
        return self

    def that_only_warns(self) -> Tracking:
        """The settings for the rest of a run that has started.

        A tracker that has become unreachable is only a warning.
        """
        return self

    def run_page(self, runs_folder: Path, run_id: str) -> str | None:
        """The address of a run's page; None where nothing is tracked."""
        return None

    def close_runs(self, runs_folder: Path, place: Path) -> None:
        """Close the runs in a folder, so that it can be cleared for new ones.

        Raises ExperimentError where MLflow lacks something of them, or `start` would refuse the new
        run.
        """
        close_runs(place)

    def close(self, runs_folder: Path, place: Path, error: str) -> None:
        """Close the run of a folder whose process was killed.

        A tracker that cannot be reached is a warning.
        """

    def log_report(self, runs_folder: Path, place: Path, page: Path) -> None:
        """Log the page of a report to the run of a place, where that has not been done.

        A tracker that cannot be reached is a warning, and the page waits on disk.
        """

    def describe_comparison(self, runs_folder: Path, place: Path, text: str) -> None:
        """Put what a comparison found into the description of the sweep's run.

        A tracker that cannot be reached is a warning, and the text waits on disk.

        place: of the sweep.
        text: Markdown.
        """

    def set_verdicts(self, runs_folder: Path, place: Path, verdicts: Mapping[str, str]) -> None:
        """Tag the runs of a sweep's points with what their comparison says of them.

        A tracker that cannot be reached is a warning, and the tags wait on disk.

        place: of the sweep.
        verdicts: {name of a point: its verdict}; a run of another point loses the one that it has.
        """

    def server_command(self, runs_folder: Path) -> str | None:
        """The command that starts the server of the pages; None where one is running elsewhere."""
        return None

    def where_to_look(self, runs_folder: Path, view: View | None = None) -> str:
        """What a person types and opens to see the runs, one or two lines.

        view: of the task whose runs are to be seen.
        """
        return "tracking is off (tracking=none)"


@dataclass(frozen=True)
class MlflowTracking(Tracking):
    """Runs go to MLflow.

    uri: `http(s)://...` of a server, `sqlite:///<file>.db`, `postgresql+psycopg2://...` or
        `mysql+pymysql://...`;
        null is what the environment variable MLFLOW_TRACKING_URI says, or else `mlflow.db` in the
        runs folder. A relative sqlite path counts from the runs folder's parent.
    experiment: MLflow's name for the group of runs; null is what the environment variable
        MLFLOW_EXPERIMENT_NAME says, or else `attnlab`.
    run_name: null makes one of the choices, as `bahdanau · dates · seed 1`.
    system_metrics: sample processor, memory, disk and network while the tracker can be reached.
    heat_map_sentences: validation sentences whose attention is drawn at each validation; 0 draws
        none.
    log_model: log the trained model in the end.
    when_unreachable: `refuse` ends a command at once whose tracker cannot be reached when it
        starts; `warn` trains, and uploads the run when the tracker is back. A sweep is refused in
        any case: its runs need a parent.
    tags: more tags of the run.
    note: stands first in its description, Markdown.
    """

    uri: str | None
    experiment: str | None
    run_name: str | None
    system_metrics: bool
    heat_map_sentences: NonNegativeInt
    log_model: bool
    when_unreachable: Literal["refuse", "warn"]
    tags: dict[str, str | int | float | bool] | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        if self.uri is not None:
            check_address(self.uri, "uri")

    @property
    def experiment_name(self) -> str:
        return self.experiment or DEFAULT_EXPERIMENT

    def address(self, runs_folder: Path) -> str:
        """The address with the path of an sqlite database made absolute."""
        runs_folder = Path(os.path.abspath(runs_folder))
        if self.uri is None:
            return f"sqlite:///{runs_folder / DATABASE_NAME}"
        if self.uri.startswith("sqlite:///"):
            return f"sqlite:///{os.path.abspath(runs_folder.parent / self.uri.removeprefix('sqlite:///'))}"
        return self.uri

    def run_page(self, runs_folder: Path, run_id: str) -> str:
        """The address of a run's page, which leads to that of its group.

        For a database it is the address at which `server_command` starts a server.
        """
        address = self.address(runs_folder)
        experiment = None
        if address.startswith("http"):
            server = masked(address).rstrip("/")
            experiment, _ = _experiment_of_server(address, self.experiment_name)
        else:
            server = local_server()
            if address.startswith("sqlite:///"):
                query = "SELECT experiment_id FROM runs WHERE run_uuid = ?"
                experiment = _query_sqlite(address, query, run_id)
        # Without its experiment the page of a run is found, too, after a detour.
        page = run_page(run_id, str(experiment)) if experiment is not None else f"#/runs/{run_id}"
        return f"{server}/{page}"

    def follow_moved_folder(self, runs_folder: Path) -> None:
        follow_moved_folder(runs_folder, self.address(runs_folder))

    def connection(self, runs_folder: Path) -> Connection:
        """To the tracker; nothing is sent yet."""
        from attnlab.runs.connection import Connection  # costs an import of mlflow

        artifacts = Path(os.path.abspath(runs_folder)) / ARTIFACTS_NAME
        return Connection(self.address(runs_folder), self.experiment_name, artifacts)

    def _uploader(self, connection: Connection) -> Uploader:
        from attnlab.runs.upload import upload_run

        return lambda run: upload_run(run, connection)

    def start(
        self, runs_folder: Path, place: Path, record: RunRecord, nothing_new: bool = False
    ) -> Run:
        # Where a sweep names its points, one name for all of them would not distinguish them.
        name = " · ".join(filter(None, (self.run_name, record.name)))[:LONGEST_NAME] or None
        tags = {accepted_name(name): as_text(value) for name, value in (self.tags or {}).items()}
        named = replace(record, name=name, tags={**tags, **record.tags}, note=self.note)
        if nothing_new:
            uploaded = self._complete_upload(runs_folder, Run.read(place), named)
            if uploaded is not None:
                return InactiveRun(uploaded)
        connection, must_reach = self.connection(runs_folder), self.when_unreachable == "refuse"
        if must_reach:
            connection.open()
        run = Run.start(place, named, origin_tags, self.log_model, self._uploader(connection))
        run.upload_new(run.state.safe_offset)
        if run.run_id is None and must_reach:
            raise ExperimentError(
                "tracking.uri: the run could not be created; correct it, or choose tracking=none"
            )
        if run.run_id is not None and self.system_metrics:
            run.stop_monitor = connection.monitor_system(run.run_id)
        return run

    def _complete_upload(
        self, runs_folder: Path, run: Run | None, record: RunRecord
    ) -> Uploaded | None:
        """How much MLflow has of a run that is completely uploaded; None otherwise.

        Its database must also say that the run is there.
        """
        address = self.address(runs_folder)
        if (
            run is None
            or run.uploaded is None
            or run.state.status != "FINISHED"
            or run.has_outbox
            or not address.startswith("sqlite")
        ):
            return None
        same = RunRecord(**masked_values(vars(record))).after(run.state.record)
        # Before runs folders could be moved, the absolute path of the database was noted.
        trackers = [portable_address(address, Path(os.path.abspath(runs_folder))), masked(address)]
        is_whole = run.is_described and run.uploaded.tracker in [
            f"{each} {self.experiment_name}" for each in trackers
        ]
        if not is_whole or (same, self.log_model) != (run.state.record, run.state.log_model):
            return None
        query = "SELECT lifecycle_stage FROM runs WHERE run_uuid = ?"
        return (
            run.uploaded if _query_sqlite(address, query, run.uploaded.run_id) == "active" else None
        )

    def for_sweep(self) -> Tracking:
        return replace(self, system_metrics=False, log_model=False, when_unreachable="refuse")

    def that_only_warns(self) -> Tracking:
        return replace(self, when_unreachable="warn")

    def close_runs(self, runs_folder: Path, place: Path) -> None:
        connection = self.connection(runs_folder)
        if self.when_unreachable == "refuse":
            connection.open()
        close_runs(place, self._uploader(connection))

    def close(self, runs_folder: Path, place: Path, error: str) -> None:
        run = Run.read(place, self._uploader(self.connection(runs_folder)))
        if run is not None and run.state.status is None:
            run.finish("KILLED", error)

    def log_report(self, runs_folder: Path, place: Path, page: Path) -> None:
        run = Run.read(place)
        # MLflow takes seconds to import.
        if run is not None and not run.has_file(page, REPORT):
            uploader = self._uploader(self.connection(runs_folder))
            Run(place, run.state, uploader).log_file(page, REPORT)

    def describe_comparison(self, runs_folder: Path, place: Path, text: str) -> None:
        run = Run.read(place, self._uploader(self.connection(runs_folder)))
        if run is not None:
            run.change(comparison=text)
            run.upload_new()

    def set_verdicts(self, runs_folder: Path, place: Path, verdicts: Mapping[str, str]) -> None:
        uploader = self._uploader(self.connection(runs_folder))
        set_verdicts(SweepFolder(place), runs_folder, verdicts, uploader)

    def where_to_look(self, runs_folder: Path, view: View | None = None) -> str:
        address = self.address(runs_folder)
        page = self._page(address, view)
        command = self.server_command(runs_folder)
        if command is None:
            return f"open {masked(address).rstrip('/')}/{page}"
        return f"{command}\nopen {local_server()}/{page}"

    def server_command(self, runs_folder: Path) -> str | None:
        address = self.address(runs_folder)
        if address.startswith("http"):
            return None
        store = masked(address)
        if address.startswith("sqlite:///"):
            store = f"sqlite:///{_short(Path(address.removeprefix('sqlite:///')))}"
        program = _short(Path(sys.executable).with_name("mlflow"))
        options = f"server --backend-store-uri {shlex.quote(store)} --host 127.0.0.1"
        return f"MLFLOW_DISABLE_TELEMETRY=true {program} {options} --port {_local_port()}"

    def _page(self, address: str, view: View | None) -> str:
        """The page of the experiment's charts; that of all experiments where it is not known."""
        if address.startswith("http"):
            found, tags = _experiment_of_server(address, self.experiment_name)
        elif address.startswith("sqlite:///"):
            query = "SELECT experiment_id FROM experiments WHERE name = ?"
            found = _query_sqlite(address, query, self.experiment_name)
            query = "SELECT key FROM experiment_tags WHERE key = ? AND experiment_id = ?"
            tags = set() if view is None else {_query_sqlite(address, query, view.tag, found)}
        else:
            found, tags = None, set()
        if found is None:
            return EXPERIMENTS_PAGE
        return charts_page(found, view if view is not None and view.tag in tags else None)


@dataclass(frozen=True)
class NoTracking(Tracking):
    """Nothing is tracked; the metrics still stand in the spool.

    heat_map_sentences: validation sentences whose attention is kept at each validation, for the
        report and the explorer; 0 keeps none.
    """

    heat_map_sentences: NonNegativeInt = 0
    draws_pictures: ClassVar[bool] = False


def local_server() -> str:
    """The address of the server that `MlflowTracking.server_command` starts."""
    return f"http://127.0.0.1:{_local_port()}"


def _local_port() -> str:
    port = os.environ.get(PORT_VARIABLE, "")
    return port if port.isdecimal() else _DEFAULT_PORT


def _query_sqlite(address: str, query: str, *values: str) -> Any:
    """The first value that an sqlite database finds; None where it has none."""
    database = Path(address.removeprefix("sqlite:///"))
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection,
    ):
        found = connection.execute(query, values).fetchone()
        return None if found is None else found[0]
    return None


def _experiment_of_server(address: str, experiment: str) -> tuple[str | None, set[str]]:
    """The id and the tags of an experiment of a server; None where the server does not say."""
    query = urllib.parse.urlencode({"experiment_name": experiment})
    page = f"{address.rstrip('/')}/api/2.0/mlflow/experiments/get-by-name?{query}"
    # ValueError: an address with a password in it, which urllib does not take.
    with suppress(OSError, ValueError, KeyError, http.client.HTTPException):
        with urllib.request.urlopen(page, timeout=_PATIENCE) as answer:
            found = json.load(answer)["experiment"]
        return str(found["experiment_id"]), {tag["key"] for tag in found.get("tags", [])}
    return None, set()


def _short(path: Path) -> str:
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()
