"""A run on disk: all that is known of it, in the folder `run` of its experiment, evaluation or sweep.

`run.json` holds what the run is and how it ended, three spools hold what it measured, `outbox` holds the files that
become its artifacts, and `mlflow.json` how much of all this MLflow has. Free of mlflow.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import Field

from attnlab.errors import ExperimentError, masked, masked_values
from attnlab.files import atomic_file, atomic_folder, read_own_record, write_json
from attnlab.training.spool import RUN_FOLDER, SPOOL_NAME, MetricSpool

Status = Literal["FINISHED", "FAILED", "KILLED"]

# In the run folder.
STATE, UPLOADED, OUTBOX = "run.json", "mlflow.json", "outbox"
LATER_METRICS, SYSTEM_METRICS = "later_metrics.jsonl", "system_metrics.jsonl"
# Beside it.
DONE = "done.json"  # written when the training is over
MODEL = "model"
ARCHIVE = "archived"
CONFIG_FILE = "config.yaml"  # among the artifacts of a run: its config as it was composed

FIRST_PAUSE = 60.0  # seconds without another try after an upload failed; twice as long after each further one
LONGEST_PAUSE = 1800.0


@dataclass(frozen=True)
class RunRecord:
    """What there is to know of a run when it starts.

    config: the whole resolved config; environment interpolations stay unresolved, so that no secret is in it.
    identity: the experiment's identity.
    data_digest: SHA-256 of the prepared data.
    data_source: where the prepared data lie.
    data_facts: a few figures about them (sizes, lengths), shown beside the dataset.
    data_columns: what a row of them holds.
    tags: more tags, which show the latest start; a sweep puts `mlflow.parentRunId` here.
    name: of the run; None means default_name.
    default_name: of a run without a name; None makes one of the choices.
    adopt: the MLflow run of a try that failed before its experiment had a folder; it becomes this experiment's, if that
        has none.
    """

    config: Mapping[str, Any]
    identity: str
    data_digest: str
    data_source: str = ""
    data_facts: Mapping[str, Any] = field(default_factory=dict)
    data_columns: tuple[str, ...] = ("source", "target")
    tags: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    default_name: str | None = None
    adopt: str | None = None


@dataclass(frozen=True)
class RunState:
    """What `run.json` holds. Times are milliseconds since 1970.

    origin: tags of the code and the machine that started the run first.
    log_model: whether the trained model becomes part of the run.
    status: with which the run ended; None while it goes on, and after its process was killed.
    error: why it failed.
    note: its description.
    safe_offset: how far its spool may be uploaded: a training that goes on from its last checkpoint writes again what
        lies behind. None: all of it.
    started, ended: of the run; opened: when a process last began to work on it.
    """

    record: RunRecord
    origin: Mapping[str, str]
    log_model: bool
    started: int
    opened: int
    status: Status | None = None
    error: str | None = None
    note: str | None = None
    safe_offset: Annotated[int, Field(ge=0)] | None = 0
    ended: int | None = None


@dataclass(frozen=True)
class UploadedSpool:
    """How far a spool was uploaded.

    fingerprint: of the bytes right before `offset`.
    """

    offset: Annotated[int, Field(ge=0)] = 0
    records: Annotated[int, Field(ge=0)] = 0
    fingerprint: str = ""


@dataclass(frozen=True)
class Uploaded:
    """What `mlflow.json` holds: how much of a run MLflow has.

    state: the digest of the state that MLflow has, together with all that belonged to it.
    heat_maps_stay: whether the tracker cannot delete any.
    """

    run_id: str
    experiment_id: str
    state: str = ""
    spools: Mapping[str, UploadedSpool] = field(default_factory=dict)
    retired_heat_maps: list[str] = field(default_factory=list)
    heat_maps_stay: bool = False


class Sampler(Protocol):
    """Something that measures beside a run until the run ends."""

    def start(self) -> None: ...

    def finish(self) -> None: ...


class Run:
    """A run, open from `start` to `finish`; as a context manager it finishes itself.

    Whatever it is given is on disk when a call returns; `upload` copies it to MLflow, at once if possible. In a forked
    child that inherits it, it does nothing.

    place: the folder of the experiment, evaluation or sweep; `folder` in it is the run's own.
    upload: `sync` with a connection: returns why something could not be uploaded, None where all was.
    """

    def __init__(self, place: Path, state: RunState, upload: Upload | None = None) -> None:
        self.place, self.folder = place, place / RUN_FOLDER
        self.state = state
        path, remedy = self.folder / UPLOADED, "remove it, and everything is uploaded again, to a new run"
        self.uploaded = read_own_record(path, Uploaded, remedy) if path.is_file() else None
        self._upload = upload
        self._sampler: Sampler | None = None
        self._process = os.getpid()
        self._finished = False
        self._try_again_at, self._pause = 0.0, FIRST_PAUSE
        self._before: RunState | None = None
        self._measured_before = 0

    @classmethod
    def start(
        cls,
        place: Path,
        record: RunRecord,
        origin: Callable[[], Mapping[str, str]] = dict,
        log_model: bool = False,
        upload: Upload | None = None,
    ) -> Self:
        """Start the run of a place, or open again the one that it has.

        origin: is called for a run that starts for the first time.

        Raises:
            ExperimentError: a file of the run is damaged, or cannot be written.
        """
        record = RunRecord(**masked_values(vars(record)))
        before, now = read_state(place), _now()
        if before is None:
            state = RunState(record, origin(), log_model, started=now, opened=now)
        else:
            again = {"status": None, "error": None, "ended": None}
            state = replace(before, record=record, log_model=log_model, opened=now, **again)  # type: ignore[arg-type]
        run = cls(place, state, upload)
        run._before, run._measured_before = before, run.measured()
        run._write()
        return run

    @classmethod
    def read(cls, place: Path, upload: Upload | None = None) -> Self | None:
        """The run that a place has; None where it has none. Raises ExperimentError for a damaged file."""
        state = read_state(place)
        return None if state is None else cls(place, state, upload)

    @property
    def run_id(self) -> str | None:
        """MLflow's id of the run; None until MLflow has it."""
        return None if self.uploaded is None else self.uploaded.run_id

    @property
    def pending(self) -> bool:
        """Whether it has ended and MLflow lacks something of it."""
        return self.state.status is not None and not self.is_described

    @property
    def is_described(self) -> bool:
        """Whether MLflow has the present state."""
        return self.uploaded is not None and self.uploaded.state == self.digest()

    def digest(self) -> str:
        """SHA-256 of the state; how far the spool is safe is no part of it."""
        fields = {**asdict(self.state), "safe_offset": None}
        return hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()

    def spools(self) -> list[tuple[MetricSpool, int | None]]:
        """The spools, each with the offset up to which it may be uploaded."""
        remedy = f"remove {self.place}, and it is not uploaded" if self.place.parent.name == ARCHIVE else None
        training = MetricSpool(self.place / SPOOL_NAME, *([remedy] if remedy else []))
        later = MetricSpool(self.folder / LATER_METRICS, remedy or "remove it, and evaluate again")
        system = MetricSpool(self.folder / SYSTEM_METRICS, remedy or "remove it")
        return [(training, self.state.safe_offset), (later, None), (system, None)]

    @property
    def model(self) -> Path | None:
        """The folder of the trained model, where it belongs to the run; an archived run has its own."""
        if self.state.status != "FINISHED" or not self.state.log_model:
            return None
        return next((path for path in (self.folder / MODEL, self.place / MODEL) if path.is_dir()), None)

    def log_metrics(self, metrics: Mapping[str, float], step: int, epoch: int | None = None) -> None:
        """Metrics of after the training, such as those of the test split; logged again, they count once."""
        if not self._is_ours():
            return
        _, (later, _), _ = self.spools()
        before = {(each.step, name): value for each in later.read()[0] for name, value in each.metrics.items()}
        new = {name: value for name, value in metrics.items() if before.get((step, name)) != value}
        if new:
            later.append(new, step, epoch)
            later.close()
            self._try_to_upload()

    def log_artifact(self, path: Path, folder: str = "") -> None:
        """A file, or a folder with all it holds, as artifact `folder/name`."""
        place = self.folder / OUTBOX / folder / path.name
        if path.is_dir():
            with atomic_folder(place) as temporary:
                shutil.copytree(path, temporary, dirs_exist_ok=True)
        else:
            with atomic_file(place) as temporary:
                shutil.copyfile(path, temporary)
        self._try_to_upload()

    def describe(self, text: str) -> None:
        """What a person should know of the run, in place of what was said before."""
        if self._is_ours():
            self._change(note=text)

    def sample(self, sampler: Sampler) -> None:
        """Let something measure until the run ends."""
        sampler.start()
        self._sampler = sampler

    def sync(self, safe_offset: int | None = None) -> None:
        """Upload what is new. A tracker that cannot be reached is a warning and a later retry.

        safe_offset: how far the spool may be uploaded (see `RunState`).

        Raises:
            ExperimentError: a file of the run is damaged.
        """
        if self._is_ours():
            if safe_offset != self.state.safe_offset:
                self._change(safe_offset=safe_offset)
            self._try_to_upload()

    def finish(self, status: Status = "FINISHED", error: str | None = None) -> None:
        """Note how the run ended, and upload the rest; a second call does nothing.

        Raises:
            ExperimentError: the end cannot be written to the disk.
        """
        if self._finished or not self._is_ours():
            return
        self._finished = True
        if self._sampler is not None:
            self._sampler.finish()
        before, ended = self._before, _now()
        unchanged = before and self._measured_before == self.measured() and before.note == self.state.note
        if before and unchanged and before.status == status == "FINISHED" and before.ended:
            ended = before.ended  # opened again, and nothing new was found
        try:
            self.close(status, error, ended)
        finally:  # on a full disk, MLflow gets to know it all the same
            self._try_to_upload(at_the_end=True)

    def close(self, status: Status, error: str | None, ended: int | None = None) -> None:
        """Note how a run ended, at a time or when its files were last written; nothing is uploaded."""
        all_is_safe = status == "FINISHED" or (self.place / DONE).is_file()
        self._change(
            status=status,
            error=None if error is None else masked(error),
            ended=ended or self._last_written(),
            safe_offset=None if all_is_safe else self.state.safe_offset,
        )

    def release(self) -> None:
        """Note that no training goes on with the run, so that all of its spool may be uploaded."""
        self._change(safe_offset=None)

    def remember(self, uploaded: Uploaded) -> None:
        """Note how much MLflow has."""
        self.uploaded = uploaded
        if self.folder.is_dir():
            write_json(self.folder / UPLOADED, asdict(uploaded))

    def _try_to_upload(self, at_the_end: bool = False) -> None:
        if self._upload is None or not self._is_ours():
            return
        if time.monotonic() < self._try_again_at and not at_the_end:
            return
        try:
            problem = self._upload(self)
        except ExperimentError as damage:
            if not at_the_end:
                raise
            problem = str(damage)  # how the run ended matters more
        if problem is None:
            self._try_again_at, self._pause = 0.0, FIRST_PAUSE
            return
        # It may stay away for hours: training does not wait for it again and again.
        self._try_again_at = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        later = "; everything is on disk, and the same command again or pipelines/deliver.py uploads it"
        print(f"warning: {problem}{later if (self.folder / STATE).is_file() else ''}", file=sys.stderr)

    def _change(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        if (self.folder / STATE).is_file():  # somebody may have removed the folder
            self._write()

    def _write(self) -> None:
        try:
            write_json(self.folder / STATE, asdict(self.state))
        except OSError as error:
            raise ExperimentError(
                f"{self.folder / STATE} could not be written: {error.strerror}; make room there, or allow it, and give "
                "the same command again"
            ) from error

    def measured(self) -> int:
        """Bytes of metrics, those of the machine left out."""
        paths = (self.place / SPOOL_NAME, self.folder / LATER_METRICS)
        return sum(path.stat().st_size for path in paths if path.is_file())

    def _last_written(self) -> int:
        paths = (self.place / SPOOL_NAME, self.folder / LATER_METRICS, self.folder / STATE)
        return int(max((path.stat().st_mtime for path in paths if path.is_file()), default=time.time()) * 1000)

    def _is_ours(self) -> bool:
        return os.getpid() == self._process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            return self.finish("FINISHED")
        try:
            if isinstance(error, Exception):
                self.finish("FAILED", f"{type(error).__name__}: {error}")
            else:  # Ctrl-C, or a signal that became SystemExit
                self.finish("KILLED", type(error).__name__)
        except (OSError, ExperimentError) as another:
            # As on a full disk: report the original error, not this one.
            print(f"warning: how the run ended could not be written down: {another}", file=sys.stderr)


Upload = Callable[[Run], str | None]


class UntrackedRun(Run):
    """A run that is recorded nowhere (`tracking=none`)."""

    def __init__(self) -> None:
        pass

    @property
    def run_id(self) -> None:
        return None

    def log_metrics(self, metrics: Mapping[str, float], step: int, epoch: int | None = None) -> None:
        pass

    def log_artifact(self, path: Path, folder: str = "") -> None:
        pass

    def describe(self, text: str) -> None:
        pass

    def sync(self, safe_offset: int | None = None) -> None:
        pass

    def finish(self, status: Status = "FINISHED", error: str | None = None) -> None:
        pass


def run_of(place: Path) -> str | None:
    """MLflow's id of the run of a place; None where it has none. Raises ExperimentError for a damaged file."""
    path = place / RUN_FOLDER / UPLOADED
    if not path.is_file():
        return None
    return read_own_record(path, Uploaded, "remove it, and the experiment gets another run in the tracker").run_id


def read_state(place: Path) -> RunState | None:
    """The state of the run of a place; None where it has none. Raises ExperimentError for a damaged file."""
    path = place / RUN_FOLDER / STATE
    if not path.is_file():
        return None
    return read_own_record(path, RunState, "remove it; MLflow then learns no more of that run, whose files stay")


def _now() -> int:
    return time.time_ns() // 1_000_000
