"""MLflow's model registry: which of all models is the one to use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import RESOURCE_ALREADY_EXISTS, RESOURCE_DOES_NOT_EXIST, ErrorCode

from attnlab.config.secrets import masked
from attnlab.errors import ExperimentError
from attnlab.tracking.database import check_is_there, open_store, refusal
from attnlab.tracking.environment import impatient
from attnlab.tracking.settings import MlflowTracking
from attnlab.tracking.tracked_run import LOST


@dataclass(frozen=True)
class Registered:
    """A version of a registered model. uri: what `mlflow.pyfunc.load_model` takes.

    new: False where the run's model had been registered before.
    """

    name: str
    version: str
    uri: str
    new: bool


def register(settings: MlflowTracking, runs_folder: Path, run_id: str, name: str, alias: str) -> Registered:
    """Register the model of a run under a name, and have the alias point to it and to no other version.

    Raises ExperimentError where the tracker has no such run, or the run no model.
    """
    check_is_there(settings.uri, runs_folder)
    store = open_store(settings.uri, settings.experiment, runs_folder)
    try:
        with impatient():
            model_id = _model_of(store.client, run_id, store.uri)
            # `models:/<id>` would be looked up in the tracker that MLflow takes by default.
            source = str(store.client.get_logged_model(model_id).artifact_location)
            known = _version_of(store.client, name, source)
            version = known or _new_version(store.client, name, source, run_id, model_id)
            store.client.set_registered_model_alias(name, alias, version)
    except LOST as error:
        raise refusal(store.uri, error) from None
    return Registered(name, version, f"models:/{name}@{alias}", known is None)


def _model_of(client: MlflowClient, run_id: str, address: str) -> str:
    try:
        outputs = client.get_run(run_id).outputs
    except MlflowException as error:
        if error.error_code != ErrorCode.Name(RESOURCE_DOES_NOT_EXIST):
            raise
        raise ExperimentError(f"run: {masked(address)} has no run {run_id}") from None
    logged = [] if outputs is None else outputs.model_outputs
    if not logged:
        raise ExperimentError(
            f"run: {run_id} has no model; it was trained with tracking.log_model=false, or not to its end"
        )
    return str(logged[-1].model_id)


def _version_of(client: MlflowClient, name: str, source: str) -> str | None:
    versions = client.search_model_versions(f"name = '{name}'")
    return next((str(found.version) for found in versions if found.source == source), None)


def _new_version(client: MlflowClient, name: str, source: str, run_id: str, model_id: str) -> str:
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != ErrorCode.Name(RESOURCE_ALREADY_EXISTS):
            raise
    return str(client.create_model_version(name, source, run_id, model_id=model_id).version)
