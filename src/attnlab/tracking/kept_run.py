"""What a run still owes its tracker, in the experiment's folder: enough to tell all of it later, by another process."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from attnlab.errors import ExperimentError
from attnlab.files import atomic_file, read_own_record
from attnlab.tracking.address import scrubbed
from attnlab.tracking.flatten import without_secrets
from attnlab.tracking.run import DONE, Status
from attnlab.tracking.settings import RunRecord

KEPT = "tracked.json"
SET_ASIDE = "set_aside"
# Where the folder of an experiment or a sweep has runs: its own, those of evaluations with another search, of jobs that
# failed before their experiment had a folder, and of what was trained anew since (hidden while it is moved there).
_INSIDE = ("", "evaluations/*/", "jobs/*/", f"{SET_ASIDE}/[!.]*/")


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

    @property
    def waits(self) -> bool:
        """Whether it has ended and was not told to the end."""
        return self.status is not None and not self.told


def keep(point: Path, **changed: Any) -> bool:
    """Change fields of what is kept; the first time `record` must be among them.

    Returns False, and keeps nothing, where there is no record to change: somebody has cleared the folder.

    Raises:
        ExperimentError: the record is damaged, or cannot be written (a full disk).
    """
    kept = read(point)
    if kept is None and "record" not in changed:
        return False
    new = replace(kept, **changed) if kept is not None else KeptRun(**changed)
    fields = asdict(new)
    fields["record"] = without_secrets(fields["record"])
    try:
        with atomic_file(point / KEPT) as temporary:
            temporary.write_text(json.dumps(fields, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ExperimentError(
            f"{point / KEPT} could not be written: {error.strerror}; make room there, or allow it, and give the same "
            "command again"
        ) from error
    return True


def ending(
    status: Status, error: str | None, up_to: int | None, address: str, really_ended: int | None = None
) -> dict[str, Any]:
    """The fields that the end of a run changes.

    address: the tracker's, whose password an error may repeat.
    really_ended: of a run of the past that is told now.
    """
    told = None if error is None else scrubbed(error, address)
    return {"status": status, "error": told, "up_to": up_to, "ended": really_ended or _now()}


def beginning(record: RunRecord) -> dict[str, Any]:
    """The fields that a run's start changes, the first one and every other.

    Not how far its spool may be told: what was safe to tell is so still, should this start come to nothing.
    """
    return {"record": record, "status": None, "error": None, "ended": None, "told": False}


def safe_up_to(point: Path) -> int | None:
    """How far the spool may be told, as far as was known when the run was last open; see `KeptRun`."""
    kept = read(point)
    return 0 if kept is None else kept.up_to


def told_up_to(point: Path, status: Status, up_to: int | None) -> int | None:
    """How far a run that ends tells its spool: all of it, where no training goes on and writes a part of it again.

    up_to: as far as the last checkpoint reached.
    """
    return None if status == "FINISHED" or (point / DONE).is_file() else up_to


def started_at(point: Path) -> int | None:
    """When the run that the tracker does not know yet began, in milliseconds since 1970."""
    kept = read(point)
    return None if kept is None else kept.started


def read(point: Path) -> KeptRun | None:
    """None where nothing was ever kept; raises ExperimentError for a damaged file."""
    path = point / KEPT
    if not path.is_file():
        return None
    return read_own_record(path, KeptRun, "remove it; the tracker is then not told of that run, whose files stay")


def kept_folders(place: Path) -> list[Path]:
    """The folders below an experiment's or a sweep's (and it itself) in which a run is kept."""
    return [path.parent for inside in _INSIDE for path in sorted(place.glob(f"{inside}{KEPT}"))]


def places(runs_folder: Path) -> list[Path]:
    """The folders of all experiments and sweeps; in each of them lies the lock of whoever is at it."""
    return sorted(path for path in (*runs_folder.glob("points/*"), *runs_folder.glob("sweeps/*")) if path.is_dir())
