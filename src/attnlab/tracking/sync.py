"""From a run folder to MLflow: `sync` uploads what MLflow lacks of a run.

What was uploaded stands in `mlflow.json`. A process that dies between an upload and this note uploads again, and MLflow
drops identical points (name, step, time, value) and overwrites files.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import requests
from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, LifecycleStage, Metric, Param, RunTag
from mlflow.entities import Run as MlflowRun
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import BAD_REQUEST, RESOURCE_DOES_NOT_EXIST, ErrorCode
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from mlflow.utils.mlflow_tags import MLFLOW_RUN_NOTE

from attnlab.config.identity import config_digest
from attnlab.errors import ExperimentError
from attnlab.tracking.connection import LOST, Connection, reason_of
from attnlab.tracking.flatten import dotted_params, readable_name, short_params
from attnlab.tracking.models import MODEL_TAG, folder_digest, log_model
from attnlab.tracking.retention import HEAT_MAPS, retired_heat_maps
from attnlab.tracking.run_folder import CONFIG_FILE, OUTBOX, Run, RunRecord, RunState, Uploaded, UploadedSpool
from attnlab.training.spool import MetricSpool, Record

LARGEST_BATCH = 1000  # metrics a request, MLflow's limit
_LONGEST_TAG = 5000


def sync(run: Run, connection: Connection) -> str | None:
    """Upload what MLflow lacks of a run; returns why something is still missing there, None where nothing is.

    Idempotent: it may be called at any time, and by another process after the run's own was killed.

    Raises:
        ExperimentError: a file of the run is damaged; all else is uploaded.
    """
    try:
        client = connection.client()
    except ExperimentError as error:
        return str(error)
    except LOST as error:
        return f"{connection.shown}: {reason_of(error)}"
    try:
        known = None if run.is_described else _describe(client, connection.experiment_id, run)
    except LOST as error:
        return f"{connection.shown}: {reason_of(error)}"
    damages, lost = [], []
    parts: dict[str, Callable[[], None]] = {
        "metrics": lambda: _upload_metrics(client, run),
        "pictures and files": lambda: _upload_artifacts(client, run),
        "the model": lambda: _upload_model(client, run, known),
    }
    for name, upload in parts.items():
        try:
            connection.client()
            upload()
        except ExperimentError as damage:
            damages += damage.problems
        except LOST as error:
            lost.append(f"{connection.shown}: {reason_of(error)}; {name} could not be uploaded")
            if run.state.status is None:  # training goes on, and does not wait for the other parts
                break
    try:
        if known is not None:
            _close(client, run)
            if not damages and not lost:
                run.remember(replace(_uploaded(run), state=run.digest()))
    except LOST as error:
        lost.append(f"{connection.shown}: {reason_of(error)}; the status could not be uploaded")
    if damages:
        raise ExperimentError(damages)
    return "; ".join(dict.fromkeys(lost)) or None


def _describe(client: MlflowClient, experiment_id: str, run: Run) -> MlflowRun:
    """Create the run in MLflow where it is missing, and upload its name, config, params, tags, note and dataset.

    Params that MLflow has stay as they are, for they never change.
    """
    state, record = run.state, run.state.record
    known = _find_or_create(client, experiment_id, run)
    run_id = known.info.run_id
    if state.status is None or record.name:
        client.update_run(run_id, status="RUNNING" if state.status is None else None, name=record.name)
    if record.config and not known.data.params:  # before the params, whose presence says that the config is there
        client.log_dict(run_id, dict(record.config), CONFIG_FILE)
    params = {**short_params(record.config), **dotted_params(record.config)}
    missing = [Param(name, value) for name, value in params.items() if name not in known.data.params]
    for start in range(0, len(missing), 100):
        client.log_batch(run_id, params=missing[start : start + 100])
    tags = {
        name: value
        for name, value in _tags(state).items()
        if name not in known.data.tags or (name in record.tags and value != known.data.tags[name])
    }
    changed = {name: value for name, value in params.items() if known.data.params.get(name, value) != value}
    if changed:  # as when a trained model is evaluated with another search
        tags["changed_params"] = json.dumps(changed, ensure_ascii=False, sort_keys=True)[:_LONGEST_TAG]
    if state.note is not None:
        tags[MLFLOW_RUN_NOTE] = state.note
    if tags:
        client.log_batch(run_id, tags=[RunTag(name, value) for name, value in tags.items()])
    if state.error is None and "error" in known.data.tags:
        client.delete_tag(run_id, "error")  # of an earlier try
    if record.data_digest:
        _log_dataset(client, run_id, _dataset(record))
    return known


def _find_or_create(client: MlflowClient, experiment_id: str, run: Run) -> MlflowRun:
    """The run that MLflow has, else the one to adopt (see `RunRecord`), else a new one, which lacks everything."""
    state, record = run.state, run.state.record
    known = None if run.run_id is None else _find(client, experiment_id, run.run_id)
    orphan = None if record.adopt is None else _find(client, experiment_id, record.adopt)
    if known is not None:
        if orphan is not None and orphan.info.run_id != known.info.run_id:
            client.delete_run(orphan.info.run_id)
        return known
    if orphan is None:
        name = record.name or record.default_name or readable_name(short_params(record.config))
        orphan = client.create_run(experiment_id, state.started, _tags(state), name)
    run.remember(Uploaded(orphan.info.run_id, experiment_id))
    return orphan


def _find(client: MlflowClient, experiment_id: str, run_id: str) -> MlflowRun | None:
    try:
        run = client.get_run(run_id)
    except MlflowException as error:
        if error.error_code == ErrorCode.Name(RESOURCE_DOES_NOT_EXIST):
            return None
        raise
    is_here = str(run.info.experiment_id) == experiment_id
    return run if is_here and run.info.lifecycle_stage == LifecycleStage.ACTIVE else None


def _tags(state: RunState) -> dict[str, str]:
    """Where the run comes from and what it was made of, each as long as MLflow takes it."""
    record = state.record
    tags = {
        **state.origin,
        "identity": record.identity,
        "config_hash": config_digest(record.config),
        **({"data_hash": record.data_digest} if record.data_digest else {}),
        **record.tags,
    }
    return {name: value[:_LONGEST_TAG] for name, value in tags.items()}


def _dataset(record: RunRecord) -> DatasetInput:
    columns = [{"type": "string", "name": name, "required": True} for name in record.data_columns]
    dataset = Dataset(
        name=short_params(record.config).get("data", "data")[:500],
        digest=record.data_digest[:16],  # a label of MLflow's tables; all of it stands in the tag data_hash
        source_type="local",
        source=json.dumps({"uri": record.data_source}),
        schema=json.dumps({"mlflow_colspec": columns}),
        profile=json.dumps(dict(record.data_facts), sort_keys=True, default=str),
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "training, validation, test")])


def _log_dataset(client: MlflowClient, run_id: str, dataset: DatasetInput) -> None:
    try:
        client.log_inputs(run_id, [dataset])
    except MlflowException as error:
        # Of two runs that bring the same one at once, each finds it missing, and a database refuses the second.
        if error.error_code != ErrorCode.Name(BAD_REQUEST):
            raise
        client.log_inputs(run_id, [dataset])


def _upload_metrics(client: MlflowClient, run: Run) -> None:
    """The records behind the last uploaded one, of each spool; one that is damaged leaves the others."""
    damages = []
    for spool, up_to in run.spools():
        try:
            _upload_spool(client, run, spool, up_to)
        except ExperimentError as damage:
            damages += damage.problems
    if damages:
        raise ExperimentError(damages)


def _upload_spool(client: MlflowClient, run: Run, spool: MetricSpool, up_to: int | None) -> None:
    uploaded, name = _uploaded(run), spool.path.name
    before = uploaded.spools.get(name, UploadedSpool())
    offset, skipped = before.offset, 0
    if offset and _fingerprint(spool.path, offset) != before.fingerprint:
        # Training went back behind what was uploaded, for its last checkpoint was damaged, and writes the same
        # records once more, with other times.
        offset, skipped = 0, before.records
    records, end = spool.read(offset, up_to)
    records = records[skipped:]
    if not records:
        return
    points = list(_points(records))
    for start in range(0, len(points), LARGEST_BATCH):
        client.log_batch(uploaded.run_id, metrics=points[start : start + LARGEST_BATCH])
    now = UploadedSpool(end, before.records + len(records), _fingerprint(spool.path, end))
    run.remember(replace(uploaded, spools={**uploaded.spools, name: now}))


def _points(records: Sequence[Record]) -> Iterator[Metric]:
    """Their metrics, and the epoch of each step once."""
    last = None
    for record in records:
        values: Mapping[str, float] = record.metrics
        if record.epoch is not None and record.step != last:
            values = {**values, "epoch": record.epoch}
            last = record.step
        for name, value in values.items():
            yield Metric(metric_name(name), value, record.time, record.step)


def metric_name(name: str) -> str:
    """A name that MLflow takes: word characters, `_ . - / :` and spaces."""
    return re.sub(r"[^\w.\- :/]", "_", name).strip("/.")[:250] or "_"


def _fingerprint(path: Path, offset: int) -> str:
    """A digest of the bytes right before `offset`, so that a spool that was cut back and grew again is recognised."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, offset - 400))
        return hashlib.sha256(file.read(min(400, offset))).hexdigest()[:16]


def _upload_artifacts(client: MlflowClient, run: Run) -> None:
    """Upload each file of the outbox and remove it there, then delete the heat maps that are no longer wanted."""
    outbox = run.folder / OUTBOX
    for path in sorted(outbox.rglob("*")) if outbox.exists() else ():
        inside = path.relative_to(outbox)
        if path.is_file() and not any(part.startswith(".") for part in inside.parts):
            folder = inside.parent.as_posix()
            client.log_artifact(_uploaded(run).run_id, str(path), None if folder == "." else folder)
            path.unlink()
    for path in sorted(outbox.rglob("*"), reverse=True) if outbox.exists() else ():
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    _delete_retired_heat_maps(client, run)


def _delete_retired_heat_maps(client: MlflowClient, run: Run) -> None:
    uploaded = _uploaded(run)
    try:
        retired = retired_heat_maps(run.folder)
    except ExperimentError as damage:
        print(f"warning: {damage}", file=sys.stderr)
        return
    if uploaded.heat_maps_stay or uploaded.retired_heat_maps == retired:
        return
    artifacts = client.get_run(uploaded.run_id).info.artifact_uri
    repository = get_artifact_repository(artifacts, tracking_uri=client.tracking_uri)
    for info in repository.list_artifacts(HEAT_MAPS):
        if info.is_dir and info.path.rpartition("/")[2] in retired:
            try:
                repository.delete_artifacts(info.path)
            except (MlflowException, NotImplementedError, requests.HTTPError):
                print("warning: the tracker cannot delete artifacts: all heat maps stay", file=sys.stderr)
                return run.remember(replace(uploaded, heat_maps_stay=True))
    run.remember(replace(uploaded, retired_heat_maps=retired))


def _upload_model(client: MlflowClient, run: Run, known: MlflowRun | None) -> None:
    if run.model is None or known is None:
        return
    digest = folder_digest(run.model)
    if known.data.tags.get(MODEL_TAG) != digest:
        log_model(client, known.info.run_id, run.model)
        client.set_tag(known.info.run_id, MODEL_TAG, digest)


def _close(client: MlflowClient, run: Run) -> None:
    """Set the status of a run that has ended."""
    state, run_id = run.state, _uploaded(run).run_id
    if state.status is not None:
        if state.error is not None:
            client.set_tag(run_id, "error", state.error[:_LONGEST_TAG])
        client.set_terminated(run_id, state.status, state.ended)


def _uploaded(run: Run) -> Uploaded:
    assert run.uploaded is not None  # since `_describe`
    return run.uploaded
