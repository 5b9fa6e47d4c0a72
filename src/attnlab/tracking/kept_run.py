"""What a run still owes its tracker, in the experiment's folder: enough to tell all of it later, by another process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from attnlab.composition.atomic import atomic_file
from attnlab.tracking.flatten import without_secrets
from attnlab.tracking.run import Status
from attnlab.tracking.settings import RunRecord

_FILE = "tracked.json"


def _now() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class KeptRun:
    """
    status: with which the run ended; None while it goes on, and where its process was killed.
    error: what it failed of.
    note: its description.
    up_to: how far its spool may be delivered; None: all of it.
    started, ended: in milliseconds since 1970.
    told: whether the tracker knows all of it.
    """

    record: RunRecord
    status: Status | None = None
    error: str | None = None
    note: str | None = None
    up_to: int | None = 0
    started: int = field(default_factory=_now)
    ended: int | None = None
    told: bool = False


def keep(point: Path, **changed: Any) -> None:
    """Change fields of what is kept; the first time `record` must be among them."""
    kept = read(point)
    new = replace(kept, **changed) if kept is not None else KeptRun(**changed)
    fields = asdict(new)
    fields["record"]["config"] = without_secrets(new.record.config)
    with atomic_file(point / _FILE) as temporary:
        temporary.write_text(json.dumps(fields, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def ending(status: Status, error: str | None, up_to: int | None) -> dict[str, Any]:
    """The fields that the end of a run changes."""
    return {"status": status, "error": error, "up_to": up_to, "ended": _now()}


def beginning(record: RunRecord) -> dict[str, Any]:
    """The fields that a run's start changes, the first one and every other."""
    return {"record": record, "status": None, "error": None, "up_to": 0, "ended": None, "told": False}


def started_at(point: Path) -> int | None:
    """When the run that the tracker does not know yet began, in milliseconds since 1970."""
    kept = read(point)
    return None if kept is None else kept.started


def read(point: Path) -> KeptRun | None:
    path = point / _FILE
    if not path.is_file():
        return None
    fields = json.loads(path.read_text(encoding="utf-8"))
    record = fields.pop("record")
    return KeptRun(RunRecord(**{**record, "data_columns": tuple(record["data_columns"])}), **fields)


def untold(runs_folder: Path) -> Iterator[tuple[Path, KeptRun]]:
    """The folders whose runs have ended and were not told to the end."""
    for path in sorted(runs_folder.glob(f"points/**/{_FILE}")):
        kept = read(path.parent)
        if kept is not None and kept.status is not None and not kept.told:
            yield path.parent, kept
