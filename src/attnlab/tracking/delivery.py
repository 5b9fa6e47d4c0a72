"""From the point's folder to MLflow: spools in large batches, the outbox file by file; each thing once.

What was delivered is remembered in `delivered.json`. A process that dies between delivering and remembering
delivers again, and MLflow drops identical points (name, step, time, value) and overwrites files.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

import requests
from mlflow import MlflowClient
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from pydantic import Field

from attnlab.errors import ExperimentError
from attnlab.files import atomic_file, read_own_record
from attnlab.tracking.outbox import OUTBOX
from attnlab.tracking.retention import HEAT_MAPS, retired_heat_maps
from attnlab.tracking.run import DELIVERED
from attnlab.training.spool import MetricSpool, Record

LARGEST_BATCH = 1000  # MLflow's limit


@dataclass(frozen=True)
class DeliveredSpool:
    """How far a spool was delivered.

    fingerprint: of what stands right before `offset`.
    """

    offset: Annotated[int, Field(ge=0)] = 0
    records: Annotated[int, Field(ge=0)] = 0
    fingerprint: str = ""


@dataclass(frozen=True)
class Delivered:
    """What stands in `delivered.json`.

    heat_maps_stay: whether the tracker deletes none.
    """

    run_id: str
    spools: dict[str, DeliveredSpool] = field(default_factory=dict)
    retired_heat_maps: list[str] = field(default_factory=list)
    heat_maps_stay: bool = False


class Delivery:
    """Delivers what lies in `point` to one MLflow run; raises ExperimentError for a damaged `delivered.json`."""

    def __init__(self, client: MlflowClient, run_id: str, point: Path) -> None:
        self._client = client
        self._run_id = run_id
        self._point = point
        self.outbox = point / OUTBOX
        self._state()  # a damaged file is told before anything is trained

    def metrics(self, spool: MetricSpool, up_to: int | None = None) -> bool:
        """Deliver the records behind the last delivered one, to byte `up_to` at most; False where there are none."""
        state = self._state()
        before = state.spools.get(spool.path.name, DeliveredSpool())
        offset, skipped = before.offset, 0
        if offset and _fingerprint(spool.path, offset) != before.fingerprint:
            # Training went back behind what was delivered, for its last checkpoint was damaged, and writes the same
            # records once more, with other times.
            offset, skipped = 0, before.records
        records, end = spool.read(offset, up_to)
        records = records[skipped:]
        if not records:
            return False
        points = list(_points(records))
        for batch in _batches(points):
            self._client.log_batch(self._run_id, metrics=batch)
        told = DeliveredSpool(end, before.records + len(records), _fingerprint(spool.path, end))
        self._remember(replace(state, spools={**state.spools, spool.path.name: told}))
        return True

    def artifacts(self) -> None:
        """Log each file of the outbox and remove it, then remove the heat maps that are no longer kept."""
        for path in sorted(self.outbox.rglob("*")) if self.outbox.exists() else ():
            inside = path.relative_to(self.outbox)
            if path.is_file() and not any(part.startswith(".") for part in inside.parts):
                folder = inside.parent.as_posix()
                self._client.log_artifact(self._run_id, str(path), None if folder == "." else folder)
                path.unlink()
        self._remove_empty_folders()
        self._retire_heat_maps()

    def _retire_heat_maps(self) -> None:
        try:
            retired = retired_heat_maps(self._point)
        except ExperimentError as damage:
            print(f"warning: {damage}", file=sys.stderr)
            return
        state = self._state()
        if state.heat_maps_stay or state.retired_heat_maps == retired:
            return
        repository = get_artifact_repository(
            self._client.get_run(self._run_id).info.artifact_uri, tracking_uri=self._client.tracking_uri
        )
        for info in repository.list_artifacts(HEAT_MAPS):
            if info.is_dir and info.path.rpartition("/")[2] in retired:
                try:
                    repository.delete_artifacts(info.path)
                except (MlflowException, NotImplementedError, requests.HTTPError):
                    print(
                        "warning: the tracker deletes no artifacts: the heat maps of all validations stay",
                        file=sys.stderr,
                    )
                    return self._remember(replace(state, heat_maps_stay=True))
        self._remember(replace(state, retired_heat_maps=retired))

    def _remove_empty_folders(self) -> None:
        for path in sorted(self.outbox.rglob("*"), reverse=True) if self.outbox.exists() else ():
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()

    def _state(self) -> Delivered:
        path, new = self._point / DELIVERED, Delivered(self._run_id)
        if not path.exists():
            return new
        state = read_own_record(path, Delivered, "remove it, and all is delivered once more")
        # Another run (the old one was deleted, another database was chosen) gets everything from the start.
        return state if state.run_id == self._run_id else new

    def _remember(self, state: Delivered) -> None:
        with atomic_file(self._point / DELIVERED) as temporary:
            temporary.write_text(json.dumps(asdict(state), indent=2, sort_keys=True) + "\n", encoding="utf-8")


def metric_name(name: str) -> str:
    """A name that MLflow takes: word characters, `_ . - / :` and spaces."""
    return re.sub(r"[^\w.\- :/]", "_", name).strip("/.")[:250] or "_"


def _points(records: Sequence[Record]) -> Iterator[Metric]:
    """Their metrics, and the epoch of each step once."""
    told = None
    for record in records:
        values = dict(record.metrics)
        if record.epoch is not None and record.step != told:
            values["epoch"] = record.epoch
            told = record.step
        for name, value in values.items():
            yield Metric(metric_name(name), value, record.time, record.step)


def _batches(points: Sequence[Metric]) -> list[Sequence[Metric]]:
    return [points[start : start + LARGEST_BATCH] for start in range(0, len(points), LARGEST_BATCH)]


def _fingerprint(path: Path, offset: int) -> str:
    """What stands right before `offset`, so that a spool that was cut back and grew again is recognised."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, offset - 400))
        return hashlib.sha256(file.read(min(400, offset))).hexdigest()[:16]
