"""Model folders from MLflow, of a run or of the registry, and how their attention formed."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import mlflow
import numpy as np
from mlflow import MlflowClient
from mlflow.artifacts import download_artifacts, list_artifacts
from mlflow.entities import LoggedModel
from mlflow.store.artifact.utils.models import get_model_name_and_version
from sqlalchemy import make_url

from attnlab.errors import ExperimentError, masked
from attnlab.evaluation.attention_map import evenly_spaced
from attnlab.evaluation.formed_attention import formed_maps
from attnlab.runs.connection import LOST, check_reachable, newest_model, reason_of
from attnlab.runs.moved_store import DATABASE_NAME, readable_copy, runs_folder_of, sqlite_file
from attnlab.runs.run_folder import HEAT_MAPS, step_name

_RUN = re.compile(r"runs:/(?P<run>[^/]+)(/.*)?")
_LOGGED = re.compile(r"models:/(?P<model>m-[0-9a-f]{32})")
_STEP = re.compile(r"step_(\d+)")
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
    with _tracker(uri, tracking_uri) as (client, address):
        location = _location(uri, client)
        whole = Path(download_artifacts(location, dst_path=str(into), tracking_uri=address))
    folder = whole / "artifacts" / "model"
    if not (folder / "model.json").is_file():
        raise ExperimentError(f"{uri} is not a model that attnlab logged")
    return folder


def download_formed(uri: str, into: Path, most: int, tracking_uri: str | None = None) -> bool:
    """Write a training folder of what the run of a model in MLflow has: maps and curves.

    Arguments and errors as for `download_model`, and:

    Args:
        into: the folder.
        most: validations, evenly spaced.

    Returns whether there are maps; the folder stays empty where there are none.
    """
    with _tracker(uri, tracking_uri) as (client, address):
        run_id = _run_of(uri, client)
        if run_id is None:
            return False
        run = client.get_run(run_id)
        place = f"{run.info.artifact_uri.rstrip('/')}/{HEAT_MAPS}"
        steps = _validated_steps(place, address)
        for step in evenly_spaced(np.array(steps, dtype=np.int64), most) if steps else []:
            name = step_name(step)
            file = f"{place}/{name}/attention.npz"
            downloaded = download_artifacts(file, dst_path=str(into), tracking_uri=address)
            shutil.move(downloaded, formed_maps(into, name))
        if steps:
            _write_curves(client, run_id, list(run.data.metrics), into / "history.csv")
    return bool(steps)


def _validated_steps(place: str, address: str) -> list[int]:
    """The steps of a run whose maps MLflow has."""
    steps = []
    for each in list_artifacts(artifact_uri=place, tracking_uri=address):
        found = _STEP.fullmatch(PurePosixPath(each.path).name)
        if each.is_dir and found is not None:
            steps.append(int(found[1]))
    return sorted(steps)


def _write_curves(client: MlflowClient, run_id: str, metrics: list[str], path: Path) -> None:
    """Write the curves of the validation metrics as a training's `history.csv`."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["step", "name", "value"])
        for name in metrics:
            if name.startswith("validation/"):
                for point in client.get_metric_history(run_id, name):
                    writer.writerow([point.step, name, point.value])


@contextmanager
def _tracker(uri: str, tracking_uri: str | None) -> Iterator[tuple[MlflowClient, str]]:
    """A client of the tracker that has a model, and its address.

    Arguments and errors as for `download_model`.
    """
    address = tracking_uri or _usual_tracker()
    database = sqlite_file(address)
    runs_folder = None if database is None else runs_folder_of(database)
    copy = None if runs_folder is None else readable_copy(runs_folder, address)
    asked = address if copy is None else f"sqlite:///{copy.name}/{DATABASE_NAME}"
    try:
        _check_database(uri, address)
        check_reachable(address)
        yield MlflowClient(asked, asked), address
    except (*LOST, ValueError) as error:
        raise ExperimentError(
            f"{uri} cannot be loaded from {masked(address)}: {reason_of(error)}"
        ) from None


def _location(uri: str, client: MlflowClient) -> str:
    """Where MLflow stores the files of a model."""
    logged = _logged_model(uri, client)
    if logged is not None:
        return str(logged.artifact_location)
    return str(client.get_model_version_download_uri(*get_model_name_and_version(client, uri)))


def _run_of(uri: str, client: MlflowClient) -> str | None:
    """The id of the run that logged a model; None where MLflow does not know it."""
    logged = _logged_model(uri, client)
    if logged is not None:
        return None if logged.source_run_id is None else str(logged.source_run_id)
    run_id = client.get_model_version(*get_model_name_and_version(client, uri)).run_id
    return str(run_id) if run_id else None


def _logged_model(uri: str, client: MlflowClient) -> LoggedModel | None:
    """The model that an address names; None for one of the registry.

    Raises ExperimentError for what is no address of a model.
    """
    if found := _RUN.fullmatch(uri):
        model = newest_model(client, client.get_run(found["run"]))
        if model is None:
            raise ExperimentError(
                f"{uri}: this run has no model; it may not have been trained to its end"
            )
        return model
    if found := _LOGGED.fullmatch(uri):
        return client.get_logged_model(found["model"])
    if _REGISTERED.fullmatch(uri):
        return None
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
