"""Runs read back from MLflow: what they measured, and where they came from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlflow.entities import LifecycleStage
from mlflow.entities import Run as MlflowRun
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE, RESOURCE_DOES_NOT_EXIST, ErrorCode

from attnlab.errors import ExperimentError
from attnlab.tracking.connection import Connection
from attnlab.tracking.run_folder import CONFIG_FILE

EVALUATION = "evaluation"  # the artifacts of an evaluation lie in a folder of this name
_OF_A_SWEEP = "varies"  # a tag that the run of a sweep itself has, and none of its children
_PAGE = 1000  # runs a request
_NOT_UNDERSTOOD = {ErrorCode.Name(code) for code in (INVALID_PARAMETER_VALUE, RESOURCE_DOES_NOT_EXIST)}


@dataclass(frozen=True)
class StoredRun:
    """A run in MLflow.

    metrics: the last value of each.
    history: {name: [(step, value), ...]} of what validation measured, steps ascending, finite values alone.
    parent: the id of the sweep's run; None outside of sweeps.
    evaluation: a copy of its evaluation folder; None where it has none.
    """

    run_id: str
    name: str
    params: dict[str, str]
    metrics: dict[str, float]
    history: dict[str, list[tuple[int, float]]]
    parent: str | None
    evaluation: Path | None


@dataclass(frozen=True)
class Origin:
    """Where a run came from.

    revision: of the code's git checkout; None where there was none.
    changed: whether the checkout differed from the revision.
    overrides: what the command line chose, as a shell reads it; empty where the config came from a file.
    data_hash: SHA-256 of the prepared data.
    repeatable, host: how far, and where, another run gives the same bytes.
    config: the file with the whole config.
    """

    name: str
    revision: str | None
    changed: bool
    overrides: str
    data_hash: str
    repeatable: str
    host: str
    config: Path


class RunReader:
    """Reads the runs of one experiment, and makes nothing where nothing is.

    Raises ExperimentError where there is no such database, no such experiment, or nobody answers.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client = connection.read_only()
        self._experiment = connection.experiment_id

    def by_ids(self, run_ids: Sequence[str], into: Path) -> list[StoredRun]:
        """The runs of these ids, their evaluations copied into a folder.

        Raises ExperimentError with all that are unknown.
        """
        found = {run_id: self._known(run_id) for run_id in run_ids}
        unknown = [run_id for run_id, run in found.items() if run is None]
        if unknown:
            where = self._connection.shown
            raise ExperimentError([f"runs: {where} has no run {run_id} in this experiment" for run_id in unknown])
        return [self._read(run, into) for run in found.values() if run is not None]

    def by_filter(self, text: str, into: Path) -> list[StoredRun]:
        """The runs that MLflow's search finds, oldest first, without the runs of sweeps themselves."""
        found: list[MlflowRun] = []
        token: str | None = None
        order = ["attributes.start_time ASC", "attributes.run_id ASC"]
        while True:
            with self._connection.refusing():
                try:
                    page = self._client.search_runs(
                        [self._experiment], text, max_results=_PAGE, order_by=order, page_token=token
                    )
                except MlflowException as error:
                    if error.error_code not in _NOT_UNDERSTOOD:
                        raise
                    raise ExperimentError(
                        "filter must be a search that MLflow understands, such as \"params.attention = 'dot'\"; got "
                        f"{text!r}, of which it says: {str(error).strip().splitlines()[0]}"
                    ) from None
            found += page
            token = page.token
            if not token:
                return [self._read(run, into) for run in found if _OF_A_SWEEP not in run.data.tags]

    def has(self, run_id: str) -> bool:
        """Whether this experiment has the run still."""
        return self._known(run_id) is not None

    def origin(self, run_id: str, into: Path) -> Origin:
        """Where a run came from; its config is copied to a folder.

        Raises ExperimentError where there is no such run, or it has no config.
        """
        run = self._known(run_id)
        if run is None:
            raise ExperimentError(f"run: {self._connection.shown} has no run {run_id} in this experiment")
        config = self._file(run_id, CONFIG_FILE, into)
        if config is None:
            raise ExperimentError(f"run: {run_id} has no {CONFIG_FILE}; the runs of sweeps themselves have none")
        tags = run.data.tags
        return Origin(
            name=run.info.run_name or run_id,
            revision=tags.get("mlflow.source.git.commit"),
            changed=tags.get("git_dirty") != "false",
            overrides=tags.get("overrides", ""),
            data_hash=tags.get("data_hash", ""),
            repeatable=tags.get("repeatable", ""),
            host=tags.get("host", ""),
            config=config,
        )

    def add_folder(self, run_id: str, folder: Path, name: str) -> None:
        """Log a folder among the run's artifacts, under a name. The run's status and times stay as they are."""
        with self._connection.refusing():
            self._client.log_artifacts(run_id, str(folder), name)

    def _file(self, run_id: str, name: str, into: Path) -> Path | None:
        """A copy of a file on the top of a run's artifacts; None where there is no such file."""
        with self._connection.refusing():
            if not any(found.path == name for found in self._client.list_artifacts(run_id)):
                return None
            into.mkdir(parents=True, exist_ok=True)
            return Path(self._client.download_artifacts(run_id, name, str(into)))

    def _known(self, run_id: str) -> MlflowRun | None:
        with self._connection.refusing():
            try:
                run = self._client.get_run(run_id)
            except MlflowException as error:
                if error.error_code in _NOT_UNDERSTOOD:
                    return None
                raise
        is_here = str(run.info.experiment_id) == self._experiment
        return run if is_here and run.info.lifecycle_stage == LifecycleStage.ACTIVE else None

    def _read(self, run: MlflowRun, into: Path) -> StoredRun:
        run_id = str(run.info.run_id)
        evaluation = None
        with self._connection.refusing():
            validated = sorted(name for name in run.data.metrics if name.startswith("validation/"))
            history = {
                name: sorted(
                    (point.step, point.value)
                    for point in self._client.get_metric_history(run_id, name)
                    if math.isfinite(point.value)
                )
                for name in validated
            }
            if any(each.path == EVALUATION for each in self._client.list_artifacts(run_id)):
                place = into / run_id
                place.mkdir(parents=True, exist_ok=True)
                evaluation = Path(self._client.download_artifacts(run_id, EVALUATION, str(place)))
        return StoredRun(
            run_id=run_id,
            name=run.info.run_name or run_id,
            params=dict(run.data.params),
            metrics=dict(run.data.metrics),
            history=history,
            parent=run.data.tags.get("mlflow.parentRunId"),
            evaluation=evaluation,
        )
