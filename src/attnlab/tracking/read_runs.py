"""Runs as MLflow remembers them, and a folder beside what they logged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests
from mlflow import MlflowClient
from mlflow.entities import LifecycleStage
from mlflow.entities import Run as MlflowRun
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE, RESOURCE_DOES_NOT_EXIST, ErrorCode
from sqlalchemy.exc import SQLAlchemyError

from attnlab.config.secrets import masked
from attnlab.errors import ExperimentError
from attnlab.tracking.address import resolved_address
from attnlab.tracking.database import check_is_there, refusal
from attnlab.tracking.environment import impatient
from attnlab.tracking.settings import MlflowTracking

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


class RunReader:
    """Reads the runs of one experiment, and makes nothing where nothing is.

    Raises ExperimentError where there is no such database, no such experiment, or nobody answers.
    """

    def __init__(self, settings: MlflowTracking, runs_folder: Path) -> None:
        self._address = resolved_address(settings.uri, runs_folder)
        check_is_there(settings.uri, runs_folder)
        with self._refusing(), impatient():
            self._client = MlflowClient(tracking_uri=self._address)
            found = self._client.get_experiment_by_name(settings.experiment)
            if found is None or found.lifecycle_stage != LifecycleStage.ACTIVE:
                names = sorted(each.name for each in self._client.search_experiments())
                raise ExperimentError(
                    f"tracking.experiment must be one of {', '.join(names)}; got {settings.experiment!r}"
                )
        self._experiment = str(found.experiment_id)

    def by_ids(self, run_ids: Sequence[str], into: Path) -> list[StoredRun]:
        """The runs of these ids, their evaluations copied into a folder.

        Raises ExperimentError with all that are unknown.
        """
        found = {run_id: self._known(run_id) for run_id in run_ids}
        unknown = [run_id for run_id, run in found.items() if run is None]
        if unknown:
            where = masked(self._address)
            raise ExperimentError([f"runs: {where} has no run {run_id} in this experiment" for run_id in unknown])
        return [self._read(run, into) for run in found.values() if run is not None]

    def by_filter(self, text: str, into: Path) -> list[StoredRun]:
        """The runs that MLflow's search finds, oldest first, without the runs of sweeps themselves."""
        found: list[MlflowRun] = []
        token: str | None = None
        order = ["attributes.start_time ASC", "attributes.run_id ASC"]
        while True:
            with self._refusing():
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

    def tags(self, run_id: str) -> tuple[str, dict[str, str]]:
        """The name and the tags of a run; raises ExperimentError where there is none."""
        run = self._known(run_id)
        if run is None:
            raise ExperimentError(f"run: {masked(self._address)} has no run {run_id} in this experiment")
        return run.info.run_name or run_id, dict(run.data.tags)

    def file(self, run_id: str, name: str, into: Path) -> Path | None:
        """A copy of a file on the top of a run's artifacts; None where there is no such file."""
        with self._refusing():
            if not any(found.path == name for found in self._client.list_artifacts(run_id)):
                return None
            into.mkdir(parents=True, exist_ok=True)
            return Path(self._client.download_artifacts(run_id, name, str(into)))

    def add_folder(self, run_id: str, folder: Path, name: str) -> None:
        """Log a folder among the run's artifacts, under a name. The run's status and times stay as they are."""
        with self._refusing():
            self._client.log_artifacts(run_id, str(folder), name)

    def _known(self, run_id: str) -> MlflowRun | None:
        with self._refusing():
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
        with self._refusing():
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

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """A tracker that fails is told in a sentence."""
        try:
            yield
        except (MlflowException, SQLAlchemyError, requests.RequestException, ImportError, OSError) as error:
            raise refusal(self._address, error) from None
