"""Trained models in MLflow: logged with a run (typed code, the model folder, attnlab itself, pinned requirements), and
registered under a name."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import mlflow.pyfunc
from mlflow import MlflowClient
from mlflow.entities import LoggedModelOutput
from mlflow.exceptions import MlflowException
from mlflow.models import Model
from mlflow.protos.databricks_pb2 import RESOURCE_ALREADY_EXISTS, RESOURCE_DOES_NOT_EXIST, ErrorCode

from attnlab.config.identity import PACKAGE_ROOT
from attnlab.errors import ExperimentError
from attnlab.model.model_folder import read_facts
from attnlab.tracking.connection import Connection, impatient

MODEL_TAG = "model_hash"  # of a run: the digest of the folder of its logged model
_SERVED = Path(__file__).with_name("served_model.py")  # what MLflow runs to load a model

# What translating and classifying need. Named outright, for inferring it would load the model in a process of its own.
_REQUIREMENTS = (
    "mlflow", "numpy", "pyarrow", "pydantic", "pytorch-lightning", "sacrebleu", "safetensors", "tokenizers",
    "torch", "torchmetrics",
)  # fmt: skip


def log_model(client: MlflowClient, run_id: str, folder: Path, step: int = 0) -> str:
    """Log the model folder as the run's model, `translator` or `classifier`, and return MLflow's id of it."""
    run = client.get_run(run_id)
    kind = "translator" if read_facts(folder).num_classes is None else "classifier"
    model = client.create_logged_model(
        run.info.experiment_id,
        kind,
        source_run_id=run_id,
        params=dict(run.data.params),
        model_type=kind,
    )
    try:
        with tempfile.TemporaryDirectory(prefix="attnlab-model-") as temporary:
            place = Path(temporary) / "model"
            _save(place, folder, Model(model.artifact_location, run_id, model_id=model.model_id))
            client.log_model_artifacts(model.model_id, str(place))
        client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step)])
    except BaseException:
        client.finalize_logged_model(model.model_id, "FAILED")
        raise
    client.finalize_logged_model(model.model_id, "READY")
    return model.model_id


def _save(place: Path, folder: Path, model: Model) -> None:
    with tempfile.TemporaryDirectory(prefix="attnlab-code-") as temporary:
        code = Path(temporary) / PACKAGE_ROOT.name
        shutil.copytree(PACKAGE_ROOT, code, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        mlflow.pyfunc.save_model(
            place,
            python_model=str(_SERVED),
            artifacts={"model": str(folder)},
            code_paths=[str(code)],
            pip_requirements=[f"{name}=={version(name).partition('+')[0]}" for name in _REQUIREMENTS],
            mlflow_model=model,
        )


def folder_digest(folder: Path) -> str:
    """SHA-256 over the names and bytes of a folder's files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@dataclass(frozen=True)
class Registered:
    """A version of a registered model. uri: what `mlflow.pyfunc.load_model` takes.

    new: False where the run's model had been registered before.
    """

    name: str
    version: str
    uri: str
    new: bool


def register(connection: Connection, run_id: str, name: str, alias: str) -> Registered:
    """Register the model of a run under a name, and have the alias point to it and to no other version.

    Raises ExperimentError where the tracker has no such run, or the run no model.
    """
    connection.check_database_exists()
    client = connection.open()
    with connection.refusing(), impatient():
        model_id = _model_of(client, run_id, connection.shown)
        # `models:/<id>` would be looked up in the tracker that MLflow takes by default.
        source = str(client.get_logged_model(model_id).artifact_location)
        known = _version_of(client, name, source)
        version = known or _new_version(client, name, source, run_id, model_id)
        client.set_registered_model_alias(name, alias, version)
    return Registered(name, version, f"models:/{name}@{alias}", known is None)


def _model_of(client: MlflowClient, run_id: str, address: str) -> str:
    try:
        outputs = client.get_run(run_id).outputs
    except MlflowException as error:
        if error.error_code != ErrorCode.Name(RESOURCE_DOES_NOT_EXIST):
            raise
        raise ExperimentError(f"run: {address} has no run {run_id}") from None
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
