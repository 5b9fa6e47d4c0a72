"""Model folders from MLflow: of a run, or of the registry."""

from __future__ import annotations

import re
from pathlib import Path

import mlflow
from mlflow import MlflowClient
from mlflow.artifacts import download_artifacts
from mlflow.store.artifact.utils.models import get_model_name_and_version
from sqlalchemy import make_url

from attnlab.errors import ExperimentError, masked
from attnlab.runs.connection import LOST, check_reachable, newest_model, reason_of
from attnlab.runs.moved_store import DATABASE_NAME, readable_copy, runs_folder_of, sqlite_file

_RUN = re.compile(r"runs:/(?P<run>[^/]+)(/.*)?")
_LOGGED = re.compile(r"models:/(?P<model>m-[0-9a-f]{32})")
_REGISTERED = re.compile(r"models:/[^/@]+(@[^/@]+|/(latest|[0-9]+))")


def download_model(uri: str, into: Path, tracking_uri: str | None = None) -> Path:
    """The folder of a model in MLflow, downloaded.

    Args:
        uri: `runs:/<id>/model`, `models:/<name>@<alias>`, `models:/<name>/<version>`,
            `models:/<name>/latest`, or `models:/m-<id>` as MLflow's pages show it.
        tracking_uri: None is the one that MLflow is set to (`mlflow.set_tracking_uri`,
            MLFLOW_TRACKING_URI), or else the database in the folder `runs`, where trainings put it
            by default.

    Raises ExperimentError where the tracker cannot be reached, or has no such model.
    """
    address = tracking_uri or _usual_tracker()
    database = sqlite_file(address)
    runs_folder = None if database is None else runs_folder_of(database)
    copy = None if runs_folder is None else readable_copy(runs_folder, address)
    asked = address if copy is None else f"sqlite:///{copy.name}/{DATABASE_NAME}"
    try:
        _check_database(uri, address)
        check_reachable(address)
        location = _location(uri, MlflowClient(asked, asked))
        whole = Path(download_artifacts(location, dst_path=str(into), tracking_uri=address))
    except (*LOST, ValueError) as error:
        raise ExperimentError(
            f"{uri} cannot be loaded from {masked(address)}: {reason_of(error)}"
        ) from None
    folder = whole / "artifacts" / "model"
    if not (folder / "model.json").is_file():
        raise ExperimentError(f"{uri} is not a model that attnlab logged")
    return folder


def _location(uri: str, client: MlflowClient) -> str:
    """Where MLflow stores the files of a model."""
    if found := _RUN.fullmatch(uri):
        model = newest_model(client, client.get_run(found["run"]))
        if model is None:
            raise ExperimentError(
                f"{uri}: this run has no model; it may not have been trained to its end"
            )
        return str(model.artifact_location)
    if found := _LOGGED.fullmatch(uri):
        return str(client.get_logged_model(found["model"]).artifact_location)
    if _REGISTERED.fullmatch(uri):
        return str(client.get_model_version_download_uri(*get_model_name_and_version(client, uri)))
    raise ExperimentError(
        f"{uri} must be runs:/<id>/model, models:/<name>@<alias>, "
        "models:/<name>/<version> or models:/<name>/latest"
    )


def _usual_tracker() -> str:
    ours = f"sqlite:///{Path('runs', DATABASE_NAME).absolute()}"
    return mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else ours


def _check_database(uri: str, address: str) -> None:
    """Raise ExperimentError for an sqlite database that does not exist.

    MLflow would create it.
    """
    url = make_url(address)
    if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).is_file():
        raise ExperimentError(
            f"{uri}: there is no database {url.database}; "
            "give tracking_uri, or set MLFLOW_TRACKING_URI"
        )
