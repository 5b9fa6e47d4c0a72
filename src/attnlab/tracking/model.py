"""A model folder as an MLflow model: typed code, the folder, attnlab itself, pinned requirements."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

import mlflow.pyfunc
from mlflow import MlflowClient
from mlflow.entities import LoggedModelOutput
from mlflow.models import Model

from attnlab.config.identity import PACKAGE_ROOT
from attnlab.model.model_folder import read_facts

_SERVED = Path(__file__).with_name("served")

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
            _save(
                place, folder, _SERVED / f"{kind}.py", Model(model.artifact_location, run_id, model_id=model.model_id)
            )
            client.log_model_artifacts(model.model_id, str(place))
        client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step)])
    except BaseException:
        client.finalize_logged_model(model.model_id, "FAILED")
        raise
    client.finalize_logged_model(model.model_id, "READY")
    return model.model_id


def _save(place: Path, folder: Path, script: Path, model: Model) -> None:
    with tempfile.TemporaryDirectory(prefix="attnlab-code-") as temporary:
        code = Path(temporary) / PACKAGE_ROOT.name
        shutil.copytree(PACKAGE_ROOT, code, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        mlflow.pyfunc.save_model(
            place,
            python_model=str(script),
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
