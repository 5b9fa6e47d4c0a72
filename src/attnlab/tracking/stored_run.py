"""The run in MLflow that an experiment has already, and the file in its folder that names it."""

from __future__ import annotations

import json
from pathlib import Path

from mlflow.entities import LifecycleStage
from mlflow.entities import Run as MlflowRun
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import RESOURCE_DOES_NOT_EXIST, ErrorCode

from attnlab.files import atomic_file
from attnlab.tracking.database import Store
from attnlab.tracking.run import RUN_FILE, run_of
from attnlab.tracking.settings import RunRecord


def stored_run(store: Store, point: Path) -> MlflowRun | None:
    """The run that the point's folder names, if this store has it still, and in this experiment."""
    run_id = run_of(point)
    return None if run_id is None else _run_here(store, run_id)


def run_to_adopt(store: Store, record: RunRecord) -> MlflowRun | None:
    """One that failed before the experiment had a folder, found in the same way."""
    return None if record.adopt is None else _run_here(store, record.adopt)


def store_run(point: Path, run: MlflowRun) -> None:
    """Name it in the point's folder."""
    with atomic_file(point / RUN_FILE) as temporary:
        names = {"experiment_id": run.info.experiment_id, "run_id": run.info.run_id}
        temporary.write_text(json.dumps(names, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _run_here(store: Store, run_id: str) -> MlflowRun | None:
    try:
        run = store.client.get_run(run_id)
    except MlflowException as error:
        if error.error_code == ErrorCode.Name(RESOURCE_DOES_NOT_EXIST):
            return None
        raise
    is_here = run.info.experiment_id == store.experiment_id
    return run if is_here and run.info.lifecycle_stage == LifecycleStage.ACTIVE else None
