"""The connection to MLflow's server or database: made in seconds or refused in a sentence."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import requests
from filelock import Timeout
from mlflow import MlflowClient
from mlflow.entities import LifecycleStage, LoggedModel, Run
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE, RESOURCE_DOES_NOT_EXIST, ErrorCode
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from attnlab.errors import ExperimentError, masked
from attnlab.files import atomic_file
from attnlab.locks import lock
from attnlab.runs.mlflow_variables import EXPERIMENT_VARIABLE, URI_VARIABLE, uri_of_environment
from attnlab.runs.moved_store import (
    DATABASE_NAME,
    STORE_LOCK,
    follow_moved_folder,
    former_place,
    portable_address,
    readable_copy,
    sqlite_file,
)

# What a server or a database that went away, or refuses, makes of a call.
LOST = (MlflowException, SQLAlchemyError, requests.RequestException, ImportError, OSError)
# What MLflow answers to a run id or a filter that it does not understand or find.
NOT_FOUND = {ErrorCode.Name(code) for code in (INVALID_PARAMETER_VALUE, RESOURCE_DOES_NOT_EXIST)}

_DEFAULT_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306}
_SAMPLING_INTERVAL = 5.0  # seconds


class Connection:
    """A connection to a tracker and to one experiment there.

    The first call of `open` or `client` makes it.

    address: with an absolute path for an sqlite database; `shown` is the same without a password,
        `name` also has the experiment, and stays the same in a runs folder that was moved.
    """

    def __init__(self, address: str, experiment: str, artifacts: Path) -> None:
        self.address, self.shown = address, masked(address)
        self.runs_folder = artifacts.parent
        self.name = f"{portable_address(address, self.runs_folder)} {experiment}"
        self._database = sqlite_file(address)
        self._experiment, self._artifacts = experiment, artifacts
        self._client: MlflowClient | None = None
        # Of a database that is read-only, as long as this lives
        self._copy: TemporaryDirectory[str] | None = None
        self.experiment_id = ""  # of an open connection
        # Where a person corrects them.
        self._uri_setting = URI_VARIABLE if address == uri_of_environment() else "tracking.uri"
        is_of_environment = experiment == os.environ.get(EXPERIMENT_VARIABLE)
        self._experiment_setting = (
            EXPERIMENT_VARIABLE if is_of_environment else "tracking.experiment"
        )

    def client(self) -> MlflowClient:
        """A client of a tracker that answered just now.

        Raises the errors of `open`; OSError where the tracker answered before and no longer does.
        """
        if self._client is None:
            return self.open()
        check_reachable(self.address)
        return self._client

    def open(self, create: bool = True) -> MlflowClient:
        """Reach the tracker; `create` the database and the experiment where they are missing.

        Raises ExperimentError, `tracking.uri ...` or `tracking.experiment ...`, within 25 seconds.
        """
        if self._client is not None:
            return self._client
        is_missing = self._database is not None and not self._database.is_file()
        if is_missing and not create:
            raise ExperimentError(
                f"{self._uri_setting}: there is no database {self._database}; track a training "
                "there first, or name another"
            )
        folder = self.runs_folder if self._database is None else self._database.parent
        address = self.address
        if not create:
            self._copy = readable_copy(self.runs_folder, self.address)
            address = (
                f"sqlite:///{self._copy.name}/{DATABASE_NAME}"
                if self._copy is not None
                else address
            )
        with self.refusing():
            check_reachable(self.address)
            folder.mkdir(parents=True, exist_ok=True)
            # Two processes that create one database or experiment at the same time break each
            # other. Reading needs no lock, which a read-only folder could not have.
            with lock(folder / STORE_LOCK, timeout=60) if create else nullcontext():
                if self._database is not None and not self._database.exists():
                    with atomic_file(self._database) as temporary:
                        SqlAlchemyStore(
                            f"sqlite:///{temporary}", self._artifacts.as_uri()
                        ).engine.dispose()
                client = MlflowClient(tracking_uri=address)
                self.experiment_id = self._find_experiment(client, create)
        if create:
            follow_moved_folder(self.runs_folder, self.address, first=True)
            self._check_location(client)
        self._client = client
        return client

    def _check_location(self, client: MlflowClient) -> None:
        """Raise ExperimentError where the experiment stores its artifacts in another runs folder.

        Either this folder is a copy that shares the database of the other one, or it was moved and
        its database is no sqlite database, which is not ours to write.
        """
        location = client.get_experiment(self.experiment_id).artifact_location
        former = former_place(self.runs_folder, location)
        if former is not None:
            raise ExperimentError(
                f"tracking.experiment: {self._experiment!r} of {self.shown} stores its artifacts "
                f"in {location}, and the runs folder {self.runs_folder} was moved or copied from "
                f"{former}; choose another tracking.experiment or tracking.uri"
            )

    def _find_experiment(self, client: MlflowClient, create: bool) -> str:
        found = client.get_experiment_by_name(self._experiment)
        if found is None and create:
            # A server has its own place for artifacts; for a bare database we name one.
            location = None if self.address.startswith("http") else self._artifacts.as_uri()
            return str(client.create_experiment(self._experiment, artifact_location=location))
        if found is None:
            names = sorted(each.name for each in client.search_experiments())
            raise ExperimentError(
                f"{self._experiment_setting} must be one of {', '.join(names)}; "
                f"got {self._experiment!r}"
            )
        if found.lifecycle_stage != LifecycleStage.ACTIVE:
            raise ExperimentError(
                f"{self._experiment_setting}: {found.name!r} was deleted in MLflow; choose another "
                "name, or restore it with `mlflow experiments restore --experiment-id "
                f"{found.experiment_id}`"
            )
        return str(found.experiment_id)

    def find_run(self, run_id: str) -> Run | None:
        """The run with this id; None where the experiment has no such run or it was deleted.

        The connection must be open.
        """
        assert self._client is not None
        try:
            run = self._client.get_run(run_id)
        except MlflowException as error:
            if error.error_code in NOT_FOUND:
                return None
            raise
        is_here = str(run.info.experiment_id) == self.experiment_id
        return run if is_here and run.info.lifecycle_stage == LifecycleStage.ACTIVE else None

    def monitor_system(self, run_id: str) -> Callable[[], None]:
        """Sample processor, memory, disk, network and GPU for a run.

        The sampling ends when the returned function is called.
        """
        monitor = SystemMetricsMonitor(
            run_id, _SAMPLING_INTERVAL, resume_logging=True, tracking_uri=self.address
        )
        monitor.start()
        return monitor.finish

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn the failure of a tracker into an ExperimentError, a sentence with a remedy."""
        try:
            yield
        except (*LOST, ValueError, Timeout) as error:
            # ValueError: a driver cannot read an option. The cause may carry the password.
            remedy = f"start the server, correct {self._uri_setting}, or choose tracking=none"
            message = (
                f"{self._uri_setting}: {self.shown} cannot be used: {reason_of(error)}; {remedy}"
            )
            raise ExperimentError(message) from None


def check_reachable(address: str) -> None:
    """Raise OSError where nothing listens at an address.

    MLflow itself would try an unreachable database for minutes.
    """
    url = make_url(address)
    port = url.port or _DEFAULT_PORTS.get(url.get_backend_name())
    # MLflow refuses the schemes that it does not know
    if url.host is not None and port is not None:
        socket.create_connection((url.host, port), timeout=5).close()


def newest_model(client: MlflowClient, run: Run) -> LoggedModel | None:
    """The model that a run logged last; None where it has none.

    A run logs another model when its model folder has changed.
    """
    outputs = run.outputs.model_outputs if run.outputs is not None else []
    models = [client.get_logged_model(output.model_id) for output in outputs]
    return max(models, key=lambda model: model.creation_timestamp, default=None)


def reason_of(error: Exception) -> str:
    """The first line of an error's message, with passwords masked."""
    return masked(str(error).strip().split("\n")[0])
