"""The connection to MLflow's server or database: made in seconds or refused in a sentence."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import requests
from filelock import FileLock, Timeout
from mlflow import MlflowClient
from mlflow.entities import Experiment, LifecycleStage
from mlflow.exceptions import MlflowException
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from attnlab.errors import ExperimentError, masked
from attnlab.files import atomic_file
from attnlab.tracking import DEFAULTS
from attnlab.tracking.address import ARTIFACTS_NAME, resolved_address, sqlite_path

# What a server or a database that went away, or refuses, makes of a call.
LOST = (MlflowException, SQLAlchemyError, requests.RequestException, ImportError, OSError)

_DEFAULT_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}
_IMPATIENT = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "5"}
_lock = threading.Lock()


class Connection:
    """To the tracker at an address, and to one experiment there; made by the first call of `open` or `client`.

    address: with the path of an sqlite database made absolute; `shown` is the same without a password.
    """

    def __init__(self, uri: str | None, experiment: str, runs_folder: Path) -> None:
        self.address = resolved_address(uri, runs_folder)
        self.shown = masked(self.address)
        self._database = sqlite_path(uri, runs_folder)
        self._experiment = experiment
        self._runs_folder = runs_folder
        self._client: MlflowClient | None = None
        self._experiment_id = ""

    @property
    def experiment_id(self) -> str:
        """MLflow's id of the experiment; of an open connection."""
        assert self._client is not None
        return self._experiment_id

    def client(self) -> MlflowClient:
        """A client of a tracker that answered just now.

        Raises:
            ExperimentError: as `open`.
            OSError: the tracker answered before, and does so no more.
        """
        if self._client is None:
            return self.open()
        knock(self.address)  # MLflow itself would try for half a minute
        return self._client

    def open(self) -> MlflowClient:
        """Reach the tracker, and create the database and the experiment where they are missing.

        Raises:
            ExperimentError: `tracking.uri ...` or `tracking.experiment ...`, within 15 seconds or so.
        """
        if self._client is not None:
            return self._client
        artifacts = Path(os.path.abspath(self._runs_folder)) / ARTIFACTS_NAME
        with self.refusing(), impatient():
            if self._database is None:
                knock(self.address)
            with _alone(self._runs_folder if self._database is None else self._database.parent):
                if self._database is not None and not self._database.exists():
                    _create_database(self._database, artifacts)
                client = MlflowClient(tracking_uri=self.address)
                found = client.get_experiment_by_name(self._experiment)
                if found is None:
                    # A server has its own place for artifacts; for a bare database we name one.
                    location = None if self.address.startswith("http") else artifacts.as_uri()
                    self._experiment_id = _create_experiment(client, self._experiment, location)
                else:
                    self._experiment_id = _usable(found)
        self._client = client
        return client

    def read_only(self) -> MlflowClient:
        """As `open`, but nothing is created.

        Raises:
            ExperimentError: there is no such database, no such experiment, or nobody answers.
        """
        self.check_database_exists()
        with self.refusing(), impatient():
            client = MlflowClient(tracking_uri=self.address)
            found = client.get_experiment_by_name(self._experiment)
            if found is None or found.lifecycle_stage != LifecycleStage.ACTIVE:
                names = sorted(each.name for each in client.search_experiments())
                raise ExperimentError(
                    f"tracking.experiment must be one of {', '.join(names)}; got {self._experiment!r}"
                )
        self._client, self._experiment_id = client, str(found.experiment_id)
        return client

    def check_database_exists(self) -> None:
        """Raise ExperimentError for a database file that is missing: reading must not create it."""
        if self._database is not None and not self._database.is_file():
            raise ExperimentError(
                f"tracking.uri: there is no database {self._database}; track a training there first, or name another"
            )

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn the failure of a tracker into an ExperimentError, a sentence with a remedy."""
        try:
            yield
        except (*LOST, ValueError, Timeout) as error:
            # ValueError: an option of an address that a driver cannot read.
            raise _refusal(self.shown, error) from None  # the cause may carry the password


def knock(address: str) -> None:
    """Raise OSError where nobody listens at an address, for MLflow itself would try a dead database for minutes."""
    if address.startswith("http"):
        parts = urlsplit(address)
        host, port, kind = parts.hostname, parts.port, parts.scheme
    else:
        url = make_url(address)
        host, port, kind = url.host, url.port, url.get_backend_name()
        url.get_dialect().import_dbapi()
    if host is None:
        return
    with suppress(TimeoutError), socket.create_connection((host, port or _DEFAULT_PORTS[kind]), timeout=5):
        return
    raise TimeoutError(f"nobody answers at {host}")


@contextmanager
def impatient() -> Iterator[None]:
    """For the first contact: one short retry, unless the user set MLflow's variables."""
    with _lock:
        # Our defaults are known by their values: a worker inherits them from the process that started it.
        quick = {name: value for name, value in _IMPATIENT.items() if os.environ.get(name) == DEFAULTS[name]}
        os.environ.update(quick)
        try:
            yield
        finally:
            os.environ.update({name: DEFAULTS[name] for name in quick})


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two processes that create one database or experiment at the same time break each other."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".mlflow.lock", timeout=60):
        yield


def _create_database(database: Path, artifacts: Path) -> None:
    """A database with MLflow's tables, there whole or not at all."""
    with atomic_file(database) as temporary:
        store = SqlAlchemyStore(f"sqlite:///{temporary.as_posix()}", artifacts.as_uri())
        store.engine.dispose()


def _create_experiment(client: MlflowClient, experiment: str, location: str | None) -> str:
    try:
        return client.create_experiment(experiment, artifact_location=location)
    except MlflowException:
        # Our lock holds on this machine; another one may have been first.
        found = client.get_experiment_by_name(experiment)
        if found is None:
            raise
        return _usable(found)


def _usable(found: Experiment) -> str:
    if found.lifecycle_stage != LifecycleStage.ACTIVE:
        raise ExperimentError(
            f"tracking.experiment: {found.name!r} was deleted in MLflow; choose another name, or restore it "
            f"with `mlflow experiments restore --experiment-id {found.experiment_id}`"
        )
    return str(found.experiment_id)


def _refusal(address: str, error: Exception) -> ExperimentError:
    if isinstance(error, ImportError):
        reason = f"its driver is not installed ({error.name})"
    elif isinstance(error, Timeout):
        reason = f"another process has held {error.lock_file} for a minute"
    elif "out-of-date database schema" in str(error):
        reason = "another version of MLflow made this database; back it up, then run `mlflow db upgrade` on it"
    else:
        reason = reason_of(error)
    remedy = "start the server, correct tracking.uri, or choose tracking=none"
    return ExperimentError(f"tracking.uri: {address} cannot be used: {reason}; {remedy}")


def reason_of(error: Exception) -> str:
    """The first line of an error's message, with passwords masked."""
    return masked(str(error).strip().split("\n")[0])
