"""MLflow's store: reached in seconds or refused in a sentence, made by one process when many start."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from filelock import FileLock, Timeout
from mlflow import MlflowClient
from mlflow.entities import Experiment, LifecycleStage
from mlflow.exceptions import MlflowException
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from attnlab.config.secrets import masked
from attnlab.errors import ExperimentError
from attnlab.files import atomic_file
from attnlab.tracking.address import ARTIFACTS_NAME, resolved_address, scrubbed, sqlite_path
from attnlab.tracking.database_options import socket_of
from attnlab.tracking.environment import impatient

_DEFAULT_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306}


@dataclass(frozen=True)
class Store:
    """An open store and the experiment that runs go to."""

    client: MlflowClient
    uri: str
    experiment_id: str


def open_store(uri: str | None, experiment: str, runs_folder: Path) -> Store:
    """Reach the store, make it and the experiment where they are missing.

    Raises:
        ExperimentError: `tracking.uri ...` or `tracking.experiment ...`, within 15 seconds or so.
    """
    address = resolved_address(uri, runs_folder)
    database = sqlite_path(uri, runs_folder)
    artifacts = Path(os.path.abspath(runs_folder)) / ARTIFACTS_NAME
    try:
        if database is None:
            knock(address)
        with _alone(runs_folder if database is None else database.parent), impatient():
            if database is not None and not database.exists():
                _create(database, artifacts)
            client = MlflowClient(tracking_uri=address)
            found = client.get_experiment_by_name(experiment)
            if found is None:
                # A server keeps artifacts where it was told to; for a bare database we name the place.
                location = None if address.startswith("http") else artifacts.as_uri()
                experiment_id = _created(client, experiment, location)
            else:
                experiment_id = _usable(found)
    except (MlflowException, SQLAlchemyError, ImportError, OSError, ValueError, Timeout) as error:
        # ValueError: of an option's value, which a driver cannot read.
        raise refusal(address, error) from None  # the cause may carry the password
    return Store(client, address, experiment_id)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".mlflow.lock", timeout=60):
        yield


def _create(database: Path, artifacts: Path) -> None:
    """A database with MLflow's tables, there whole or not at all."""
    with atomic_file(database) as temporary:
        store = SqlAlchemyStore(f"sqlite:///{temporary.as_posix()}", artifacts.as_uri())
        store.engine.dispose()


def check_is_there(uri: str | None, runs_folder: Path) -> None:
    """Raise ExperimentError for a database file that is not there: whoever only reads must make none."""
    database = sqlite_path(uri, runs_folder)
    if database is not None and not database.is_file():
        raise ExperimentError(
            f"tracking.uri: there is no database {database}; track a training there first, or name another"
        )


def _created(client: MlflowClient, experiment: str, location: str | None) -> str:
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


def knock(address: str) -> None:
    """See that somebody listens, for MLflow itself would try a dead database for minutes."""
    if address.startswith("http"):
        parts = urlsplit(address)
        host, port, kind = parts.hostname, parts.port, parts.scheme
    else:
        url = make_url(address)
        host, port, kind = url.host, url.port, url.get_backend_name()
        url.get_dialect().import_dbapi()
        local = socket_of(url)
        if local is not None:
            with socket.socket(socket.AF_UNIX) as tried:
                tried.settimeout(5)
                tried.connect(local)
            return
    if host is not None:
        with (
            suppress(TimeoutError),
            socket.create_connection((host, port or _DEFAULT_PORTS[kind]), timeout=5),
        ):
            return
        raise TimeoutError(f"nobody answers at {host}")


def refusal(address: str, error: Exception) -> ExperimentError:
    """What the user is told of a store that cannot be used."""
    if isinstance(error, ImportError):
        reason = f"its driver is not installed ({error.name})"
    elif isinstance(error, Timeout):
        reason = f"another process has held {error.lock_file} for a minute"
    elif "out-of-date database schema" in str(error):
        reason = "another version of MLflow made this database; back it up, then run `mlflow db upgrade` on it"
    else:
        reason = scrubbed(str(error).strip().split("\n")[0], address)
    remedy = "start the server, correct tracking.uri, or choose tracking=none"
    return ExperimentError(f"tracking.uri: {masked(address)} cannot be used: {reason}; {remedy}")
