"""From a run folder to MLflow: `upload_run` uploads what MLflow lacks of a run.

What was uploaded stands in `mlflow.json`. A process that dies between an upload and this note
uploads again, and MLflow drops identical points (name, step, time, value) and overwrites files.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import (
    Dataset,
    DatasetInput,
    InputTag,
    LoggedModelOutput,
    Metric,
    Param,
    RunTag,
)
from mlflow.entities import Run as MlflowRun
from mlflow.exceptions import MlflowException
from mlflow.models import Model
from mlflow.utils.mlflow_tags import MLFLOW_RUN_NOTE

from attnlab.config.identity import config_digest
from attnlab.config.names import readable_name
from attnlab.config.params import short_params, value_at
from attnlab.errors import ExperimentError
from attnlab.model.model_folder import read_facts
from attnlab.runs.connection import LOST, Connection, newest_model, reason_of
from attnlab.runs.description import description
from attnlab.runs.images import image_place, log_image
from attnlab.runs.logged_model import save_logged_model
from attnlab.runs.run import Run
from attnlab.runs.run_folder import (
    CONFIG_FILE,
    LAYOUT,
    OUTBOX,
    RunRecord,
    RunState,
    Uploaded,
    UploadedSpool,
)
from attnlab.runs.shared_views import VERDICT_TAG, run_page, share_view
from attnlab.runs.shown_metrics import TEST, shown_points, tested_step
from attnlab.runs.shown_params import shown_params
from attnlab.training.spool import MetricSpool

LARGEST_BATCH = 1000  # metrics a request, MLflow's limit
# Tags of a run.
MODEL_TAG = "model_hash"  # the digest of the folder of its logged model
STEP_TAG = "model_step"  # the training step of the model that was tested
_ERROR_TAG = "error"
_LONGEST_TAG = 5000


def upload_run(run: Run, connection: Connection) -> str | None:
    """Upload what MLflow lacks of a run.

    Returns why something is still missing there, None where nothing is.

    Idempotent: it may be called at any time, and by another process after the run's own was killed.
    """
    try:
        _upload_missing(run, connection)
    except ExperimentError as error:
        return str(error)
    except LOST as error:
        return f"{connection.shown}: {reason_of(error)}"
    return None


def _upload_missing(run: Run, connection: Connection) -> None:
    client = connection.client()
    # None where MLflow has the present state: then only metrics and files can be new.
    described = None if run.is_described else _describe(client, connection, run)
    has_new_metrics = False
    for spool, up_to in run.spools():
        has_new_metrics |= _upload_spool(client, run, spool, up_to)
    if described is not None or has_new_metrics:
        _upload_description(client, connection, run)

    state = run.state
    if described is not None and state.status is not None:
        client.set_terminated(_uploaded(run).run_id, state.status, state.ended)
    _upload_artifacts(client, run)
    if described is not None:
        _upload_model(client, connection, run, described)
        _link_metrics(client, connection, run)
        run.note_uploaded(replace(_uploaded(run), state=run.digest(), tracker=connection.name))


def _describe(client: MlflowClient, connection: Connection, run: Run) -> MlflowRun:
    """Create the run in MLflow where it is missing, and upload its description.

    That is its name, config, params, tags and dataset. Params that MLflow has stay as they are, for
    they never change.
    """
    state, record = run.state, run.state.record
    params = shown_params(record.config) if record.params is None else record.params

    known = None if run.run_id is None else connection.find_run(run.run_id)
    if known is None:
        name = record.name or _title(record)
        known = client.create_run(connection.experiment_id, state.started, _tags(state), name)
        run.note_uploaded(Uploaded(known.info.run_id, layout=LAYOUT))
    run_id = known.info.run_id
    client.update_run(run_id, status="RUNNING" if state.status is None else None, name=record.name)

    # Before the params, whose presence says that the config is there
    in_mlflow = known.data.params
    if record.config and not in_mlflow:
        client.log_dict(run_id, dict(record.config), CONFIG_FILE)
    missing = [Param(name, value) for name, value in params.items() if name not in in_mlflow]
    for start in range(0, len(missing), 100):  # MLflow's limit
        client.log_batch(run_id, params=missing[start : start + 100])

    tags = _tags(state)
    client.log_batch(run_id, tags=[RunTag(name, value) for name, value in tags.items()])
    for name in (_ERROR_TAG, VERDICT_TAG):
        if name in known.data.tags and name not in tags:
            client.delete_tag(run_id, name)  # of an earlier try, or an earlier comparison
    if record.data_digest:
        client.log_inputs(run_id, [_dataset(record, connection)])
    if record.view is not None:
        # Without it, MLflow shows its own defaults: a server that refuses tags stops nothing.
        with suppress(MlflowException):
            share_view(client, client.get_experiment(connection.experiment_id), record.view)
    return known


def _title(record: RunRecord) -> str:
    """The name of the experiment of a run."""
    return record.title or readable_name(record.config)


def _tags(state: RunState) -> dict[str, str]:
    """Where the run comes from and what it was made of, each as long as MLflow takes it."""
    record = state.record
    tags = {
        **state.origin,
        "identity": record.identity,
        "config_hash": config_digest(record.config),
    }
    if record.data_digest:
        tags["data_hash"] = record.data_digest
    if state.error is not None:
        tags[_ERROR_TAG] = state.error
    if state.verdict is not None:
        tags[VERDICT_TAG] = state.verdict
    tags |= record.tags
    return {name: value[:_LONGEST_TAG] for name, value in tags.items()}


def _dataset(record: RunRecord, connection: Connection) -> DatasetInput:
    """The prepared data as MLflow describes an input of a run."""
    name = short_params(record.config).get("data", "data")
    folder = connection.runs_folder / record.data_source
    columns = [{"type": "string", "name": each, "required": True} for each in record.data_columns]
    dataset = Dataset(
        name=name[:500],
        # A label of MLflow's tables; all of it stands in the tag data_hash
        digest=record.data_digest[:16],
        source_type="local",
        source=json.dumps({"uri": str(folder)}),
        schema=json.dumps({"mlflow_colspec": columns}),
        profile=json.dumps(dict(record.data_facts), sort_keys=True, default=str),
    )
    splits = InputTag("mlflow.data.context", "training, validation, test")
    return DatasetInput(dataset, [splits])


def _upload_description(client: MlflowClient, connection: Connection, run: Run) -> None:
    """Set the run's description, unless somebody wrote another one in MLflow's page."""
    uploaded = _uploaded(run)
    data = client.get_run(uploaded.run_id).data
    text = description(run.state, data.metrics)
    page = run_page(r"\1", connection.experiment_id)
    text = re.sub(r"(?<=\]\()runs:/(\w+)(?=\))", page, text)[:_LONGEST_TAG]
    in_mlflow = data.tags.get(MLFLOW_RUN_NOTE, "")
    is_ours = in_mlflow in ("", uploaded.description)
    if is_ours and text != uploaded.description:
        client.set_tag(uploaded.run_id, MLFLOW_RUN_NOTE, text)
        run.note_uploaded(replace(uploaded, description=text))


def _upload_spool(client: MlflowClient, run: Run, spool: MetricSpool, up_to: int | None) -> bool:
    """Upload the records behind the last uploaded one; returns whether there were any."""
    uploaded = _uploaded(run)
    name = spool.path.name
    before = uploaded.spools.get(name, UploadedSpool())
    records, _ = spool.read(up_to, skip=before.records)
    if not records:
        return False

    points = list(shown_points(records, uploaded.layout))
    for start in range(0, len(points), LARGEST_BATCH):
        client.log_batch(uploaded.run_id, metrics=points[start : start + LARGEST_BATCH])
    step = tested_step(records)
    if step is not None:
        client.set_tag(uploaded.run_id, STEP_TAG, str(step))
    now = UploadedSpool(before.records + len(records))
    run.note_uploaded(replace(uploaded, spools={**uploaded.spools, name: now}))
    return True


def _upload_artifacts(client: MlflowClient, run: Run) -> None:
    """Upload each file of the outbox and remove it there."""
    run_id = _uploaded(run).run_id
    outbox = run.folder / OUTBOX
    for path in run.outbox_files():
        inside = path.relative_to(outbox)
        place = image_place(inside)
        if place is None:
            folder = inside.parent.as_posix()
            client.log_artifact(run_id, str(path), None if folder == "." else folder)
        else:
            log_image(client, run_id, path, place)
        path.unlink()


def _upload_model(client: MlflowClient, connection: Connection, run: Run, known: MlflowRun) -> None:
    """Log the model folder as the run's model, named by its choices, where that is not done yet."""
    folder = run.model
    run_id = known.info.run_id
    if folder is None:
        return
    digest = _folder_digest(folder)
    if known.data.tags.get(MODEL_TAG) == digest:
        return

    record = run.state.record
    kind = "model" if record.served is None else record.served.kind
    params = client.get_run(run_id).data.params
    # The characters that MLflow refuses
    name = re.sub("[/:.%\"']", "_", _title(record))
    model = client.create_logged_model(
        known.info.experiment_id, name, run_id, params=params, model_type=kind
    )
    try:
        with tempfile.TemporaryDirectory(prefix="attnlab-model-") as temporary:
            place = Path(temporary) / "model"
            about = Model(model.artifact_location, run_id, model_id=model.model_id)
            save_logged_model(place, folder, record.served, record.example, about)
            client.log_model_artifacts(model.model_id, str(place))
        client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step=0)])
    except BaseException:
        client.finalize_logged_model(model.model_id, "FAILED")
        raise
    client.finalize_logged_model(model.model_id, "READY")
    client.set_tag(run_id, MODEL_TAG, digest)


def _link_metrics(client: MlflowClient, connection: Connection, run: Run) -> None:
    """Log what was measured of the run's model as metrics of the model.

    The metrics name the data that they were measured on. A model that is the mean of several
    checkpoints was measured on the test split alone.
    """
    if run.model is None:
        return
    uploaded = _uploaded(run)
    run_id = uploaded.run_id
    model = newest_model(client, client.get_run(run_id))
    if model is None:
        return

    record = run.state.record
    step = read_facts(run.model).step
    is_mean = value_at(record.config, "training.average_checkpoints") != 1
    splits = (TEST,) if is_mean else ("validation/", TEST)
    dataset = _dataset(record, connection).dataset
    measured_on = {
        "model_id": model.model_id,
        "dataset_name": dataset.name,
        "dataset_digest": dataset.digest,
    }
    measured = []
    for spool, _ in run.spools():
        logged, _ = spool.read()
        of_model = [each for each in logged if each.step == step]
        for point in shown_points(of_model, uploaded.layout):
            if point.key.startswith(splits):
                metric = Metric(point.key, point.value, point.timestamp, point.step, **measured_on)
                measured.append(metric)
    client.log_batch(run_id, metrics=measured)


def _folder_digest(folder: Path) -> str:
    """SHA-256 over the names and bytes of a folder's files."""
    digest = hashlib.sha256()
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in sorted(files):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _uploaded(run: Run) -> Uploaded:
    """What is noted of a run that MLflow knows."""
    assert run.uploaded is not None  # since `_describe`
    return run.uploaded
