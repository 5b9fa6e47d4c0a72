"""What a sweep keeps on disk of itself: `sweep.json`, and `jobs/<number>.json` for each job.

Whoever wants to know how a sweep stands, or what it found, reads these files and no tracker.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from attnlab.errors import ExperimentError
from attnlab.files import atomic_file

RecordT = TypeVar("RecordT")

LOCK = "lock"


@dataclass(frozen=True)
class SweepRecord:
    """A sweep.

    identity: sixteen hexadecimal digits that a repeated sweep has again.
    name: for people, `attention × seed`.
    varies: the keys that differ from point to point, in the order of the command.
    overrides: the command's, without what is secret in them.
    points: how many there are in all.
    run_id: of the sweep's own run in the tracker; None where nothing is tracked.
    started: when it was last started, in seconds since 1970.
    quiet: whether jobs write what they say to a file of their own.
    rerun_since: when rerun=true began to train everything again, in seconds since 1970; None where it did not.
    ended: when its last job had ended, in seconds since 1970; None where it was stopped before that, or runs.
    """

    identity: str
    name: str
    varies: list[str]
    overrides: list[str]
    points: int
    run_id: str | None
    started: float
    quiet: bool
    rerun_since: float | None = None
    ended: float | None = None


@dataclass(frozen=True)
class JobRecord:
    """A job of a sweep, which is one point of it.

    choices: what varies, by key, as text.
    start_of_sweep: `SweepRecord.started` of the start that ran it last.
    started, ended: in seconds since 1970.
    output: the folder with its results.
    identity: the experiment's; None until it is known.
    data: the folder of its prepared data.
    new: whether it trained; False where the point was finished before.
    run_id: in the tracker.
    error: one sentence or more, of a failed job.
    """

    number: int
    name: str
    choices: dict[str, str]
    overrides: list[str]
    status: Literal["running", "finished", "failed"]
    start_of_sweep: float
    started: float
    output: str
    ended: float | None = None
    identity: str | None = None
    data: str | None = None
    new: bool = True
    run_id: str | None = None
    error: str | None = None
    objectives: dict[str, float | None] = field(default_factory=dict)


class SweepFolder:
    """`runs/sweeps/<identity>`: the records, and beside them the jobs' outputs, each under its number."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        return (self.path / "sweep.json").is_file()

    def read(self) -> SweepRecord:
        return _read(self.path / "sweep.json", SweepRecord)

    def write(self, record: SweepRecord) -> None:
        _write(self.path / "sweep.json", record)

    def jobs(self, start_of_sweep: float | None = None) -> list[JobRecord]:
        """All jobs by their numbers, or those alone that this start of the sweep has run so far."""
        found = (_read(path, JobRecord) for path in (self.path / "jobs").glob("[0-9]*.json"))
        wanted = (job for job in found if start_of_sweep in (None, job.start_of_sweep))
        return sorted(wanted, key=lambda job: job.number)

    def clear(self, *kept: str) -> None:
        """Forget all jobs, their outputs and the sweep's own run; the lock, which is held, stays, and what is named."""
        for path in self.path.iterdir():
            if path.name not in (LOCK, *kept):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def job(self, number: int) -> JobRecord | None:
        path = self._job(number)
        return _read(path, JobRecord) if path.is_file() else None

    def write_job(self, job: JobRecord) -> None:
        _write(self._job(job.number), job)

    def _job(self, number: int) -> Path:
        return self.path / "jobs" / f"{number}.json"


def _read(path: Path, kind: type[RecordT]) -> RecordT:
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ExperimentError(f"{path} is no record of a sweep ({place or 'it'}: {first['msg']}); remove it") from error


def _write(path: Path, record: Any) -> None:
    with atomic_file(path) as temporary:
        temporary.write_bytes(TypeAdapter(type(record)).dump_json(record, indent=2) + b"\n")


LAST = "last"


def find_sweep(runs_folder: Path, wanted: str) -> SweepFolder:
    """The sweep of this identity, or the one that was started last; raises ExperimentError where it is not clear."""
    folders = [SweepFolder(path.parent) for path in (runs_folder / "sweeps").glob("*/sweep.json")]
    found = {folder.path.name: folder for folder in folders}
    if not found:
        raise ExperimentError(
            f"sweep: there is no sweep in {runs_folder / 'sweeps'}; python pipelines/train.py -m ... starts one"
        )
    if wanted == LAST:
        return max(folders, key=lambda folder: (folder.read().started, folder.path.name))
    matching = sorted(identity for identity in found if identity.startswith(wanted))
    if not matching:
        raise ExperimentError(
            f"sweep must be {LAST} or (the beginning of) one of {', '.join(sorted(found))}; got {wanted!r}"
        )
    if len(matching) > 1:
        raise ExperimentError(f"sweep: {wanted!r} begins {', '.join(matching)}; give more of the one that is meant")
    return found[matching[0]]
