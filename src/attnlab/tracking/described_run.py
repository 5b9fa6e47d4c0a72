"""What a run in MLflow says of itself: its params, tags, config and dataset."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Param, RunTag
from mlflow.entities import Run as MlflowRun
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import BAD_REQUEST, ErrorCode

from attnlab.config.identity import config_digest
from attnlab.tracking.address import masked
from attnlab.tracking.flatten import dotted_params, short_params, without_secrets
from attnlab.tracking.origin import origin_tags
from attnlab.tracking.run import CONFIG_FILE
from attnlab.tracking.settings import RunRecord


def describe(client: MlflowClient, known: MlflowRun, record: RunRecord) -> None:
    """Tell what it does not say yet: config, params, tags and the dataset.

    What is there already stays, for MLflow's params never change.
    """
    # Before the params, which tell that it is there.
    if record.config and not known.data.params:
        client.log_dict(known.info.run_id, without_secrets(record.config), CONFIG_FILE)
    params = {**short_params(record.config), **dotted_params(record.config)}
    missing = [Param(name, value) for name, value in params.items() if name not in known.data.params]
    for start in range(0, len(missing), 100):
        client.log_batch(known.info.run_id, params=missing[start : start + 100])
    tags = {
        name: value
        for name, value in run_tags(record).items()
        if name not in known.data.tags or (name in record.tags and value != known.data.tags[name])
    }
    changed = {name: value for name, value in params.items() if known.data.params.get(name, value) != value}
    if changed:
        # As when a trained model is evaluated with another search.
        tags["changed_params"] = json.dumps(changed, ensure_ascii=False, sort_keys=True)[:5000]
    if tags:
        client.log_batch(known.info.run_id, tags=[RunTag(name, value) for name, value in tags.items()])
    if record.data_digest:
        _log_dataset(client, known.info.run_id, _dataset(record))


def run_tags(record: RunRecord) -> dict[str, str]:
    """Where it comes from and what it was made of, without secrets, each as long as MLflow takes it."""
    tags = {
        **origin_tags(),
        "identity": record.identity,
        "config_hash": config_digest(record.config),
        **({"data_hash": record.data_digest} if record.data_digest else {}),
        "mlflow.source.name": Path(sys.argv[0]).name or "python",
        **record.tags,
    }
    return {name: masked(value)[:5000] for name, value in tags.items()}


def _log_dataset(client: MlflowClient, run_id: str, dataset: DatasetInput) -> None:
    try:
        client.log_inputs(run_id, [dataset])
    except MlflowException as error:
        # Of two runs that bring the same one at once, each finds it missing, and a database refuses the second.
        if error.error_code != ErrorCode.Name(BAD_REQUEST):
            raise
        client.log_inputs(run_id, [dataset])


def _dataset(record: RunRecord) -> DatasetInput:
    columns = [{"type": "string", "name": name, "required": True} for name in record.data_columns]
    dataset = Dataset(
        name=short_params(record.config).get("data", "data")[:500],
        digest=record.data_digest[:16],  # a label of MLflow's tables; all of it stands in the tag data_hash
        source_type="local",
        source=json.dumps({"uri": masked(record.data_source)}),
        schema=json.dumps({"mlflow_colspec": columns}),
        profile=json.dumps(dict(record.data_facts), sort_keys=True, default=str),
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "training, validation, test")])
