"""Model folders from MLflow: of a run, or of the registry."""

from __future__ import annotations

from pathlib import Path

import mlflow
from mlflow import MlflowClient
from mlflow.artifacts import download_artifacts

from attnlab.errors import ExperimentError, masked
from attnlab.tracking.connection import LOST, knock, reason_of
from attnlab.tracking.settings import DATABASE_NAME

SCHEMES = ("runs:/", "models:/")


def download_model(uri: str, into: Path, tracking_uri: str | None = None) -> Path:
    """The model folder behind `runs:/<id>/model`, `models:/<name>@<alias>` or `models:/<name>/<version>`.

    tracking_uri: None is the one that MLflow was told (`mlflow.set_tracking_uri`, MLFLOW_TRACKING_URI), or else the
        database in the folder `runs`, where trainings put it by default.

    Raises ExperimentError where the tracker cannot be reached, or has no such model.
    """
    address = tracking_uri or _usual_tracker()
    try:
        knock(address)
        client = MlflowClient(address, address)
        if uri.startswith("runs:/"):
            run = client.get_run(uri.removeprefix("runs:/").split("/")[0])
            if run.outputs is None or not run.outputs.model_outputs:
                raise ExperimentError(f"{uri}: this run has no model; it may not have been trained to its end")
            location = client.get_logged_model(str(run.outputs.model_outputs[-1].model_id)).artifact_location
        else:
            name, _, version = uri.removeprefix("models:/").partition("/")
            name, _, alias = name.partition("@")
            found = client.get_model_version_by_alias(name, alias) if alias else client.get_model_version(name, version)
            location = client.get_model_version_download_uri(name, found.version)
        whole = Path(download_artifacts(location, dst_path=str(into), tracking_uri=address))
    except (*LOST, ValueError) as error:
        raise ExperimentError(f"{uri} cannot be loaded from {masked(address)}: {reason_of(error)}") from None
    folder = whole / "artifacts" / "model"
    if not (folder / "model.json").is_file():
        raise ExperimentError(f"{uri} is not a model that attnlab logged")
    return folder


def _usual_tracker() -> str:
    if mlflow.is_tracking_uri_set():
        return mlflow.get_tracking_uri()
    ours = Path("runs", DATABASE_NAME).absolute()
    if not ours.is_file():  # MLflow would make an empty database in the current folder
        raise ExperimentError(f"no tracker to load a model from: {ours} is missing, and MLFLOW_TRACKING_URI is not set")
    return f"sqlite:///{ours}"
