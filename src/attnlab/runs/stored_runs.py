"""Runs that MLflow has: read back for comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from mlflow.entities import Run as MlflowRun
from mlflow.exceptions import MlflowException

from attnlab.config.params import dotted_params, params_as_today, short_params
from attnlab.config.renamed import with_new_names
from attnlab.errors import ExperimentError
from attnlab.runs.connection import NOT_FOUND, Connection, reason_of
from attnlab.runs.run_folder import CONFIG_FILE
from attnlab.runs.shown_metrics import shown_name

EVALUATION = "evaluation"  # the artifacts of an evaluation lie in a folder of this name
_OF_A_SWEEP = "varies"  # a tag that the run of a sweep itself has, and none of its children
_MOST_RUNS = 50_000  # MLflow's limit for a search


@dataclass(frozen=True)
class StoredRun:
    """A run in MLflow.

    params: short names of the choices, and all settings.
    metrics: the last value of each, by the names that this version gives them.
    history: {name: [(step, value), ...]} of what validation measured, steps ascending, finite
        values alone.
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


class StoredRuns:
    """The runs of one experiment; nothing is created where nothing is.

    Raises ExperimentError where there is no such database, no such experiment, or nobody answers.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client = connection.open(create=False)

    def by_ids(self, run_ids: Sequence[str], into: Path) -> list[StoredRun]:
        """The runs of these ids, their evaluations copied into a folder.

        Raises ExperimentError with all that are unknown.
        """
        with self._connection.refusing():
            found = {run_id: self._connection.find_run(run_id) for run_id in run_ids}
            unknown = [run_id for run_id, run in found.items() if run is None]
            if unknown:
                shown = self._connection.shown
                raise ExperimentError(
                    [f"runs: {shown} has no run {each} in this experiment" for each in unknown]
                )
            return [self._read(run, into) for run in found.values() if run is not None]

    def by_filter(self, text: str, into: Path) -> list[StoredRun]:
        """The runs that MLflow's search finds, oldest first.

        The runs of sweeps themselves are left out.
        """
        order = ["attributes.start_time ASC", "attributes.run_id ASC"]
        with self._connection.refusing():
            try:
                experiments = [self._connection.experiment_id]
                found = self._client.search_runs(
                    experiments, text, max_results=_MOST_RUNS, order_by=order
                )
            except MlflowException as error:
                if error.error_code not in NOT_FOUND:
                    raise
                raise ExperimentError(
                    'filter must be a search that MLflow understands, such as "params.attention = '
                    f"'dot'\"; got {text!r}, of which it says: {reason_of(error)}"
                ) from None
            return [self._read(run, into) for run in found if _OF_A_SWEEP not in run.data.tags]

    def add_folder(self, run_id: str, folder: Path, name: str) -> None:
        """Log a folder among the run's artifacts, under a name.

        The run's status and times stay as they are.

        Raises ExperimentError where there is no such run any more.
        """
        with self._connection.refusing():
            self._run(run_id)
            self._client.log_artifacts(run_id, str(folder), name)

    def _run(self, run_id: str) -> MlflowRun:
        run = self._connection.find_run(run_id)
        if run is None:
            raise ExperimentError(
                f"run: {self._connection.shown} has no run {run_id} in this experiment"
            )
        return run

    def _read(self, run: MlflowRun, into: Path) -> StoredRun:
        run_id, evaluation = str(run.info.run_id), None
        params = params_as_today(run.data.params)
        place = into / run_id
        place.mkdir(parents=True, exist_ok=True)
        artifacts = {found.path for found in self._client.list_artifacts(run_id)}
        if EVALUATION in artifacts:
            evaluation = Path(self._client.download_artifacts(run_id, EVALUATION, str(place)))
        if CONFIG_FILE in artifacts:
            # MLflow's params are those that differ from the defaults.
            text = self._client.download_artifacts(run_id, CONFIG_FILE, str(place))
            config = yaml.safe_load(Path(text).read_text(encoding="utf-8"))
            config = with_new_names(config)
            params |= {**short_params(config), **dotted_params(config)}
        of_validation = [
            name for name in sorted(run.data.metrics) if name.startswith("validation/")
        ]
        history = {name: self._finite_history(run_id, name) for name in of_validation}
        return StoredRun(
            run_id=run_id,
            name=run.info.run_name or run_id,
            params=params,
            metrics={shown_name(name): value for name, value in run.data.metrics.items()},
            history=history,
            parent=run.data.tags.get("mlflow.parentRunId"),
            evaluation=evaluation,
        )

    def _finite_history(self, run_id: str, metric: str) -> list[tuple[int, float]]:
        """The values of a metric, by step."""
        points = self._client.get_metric_history(run_id, metric)
        return sorted((point.step, point.value) for point in points if math.isfinite(point.value))
