"""An active run: it writes everything to its run folder first, and uploads it from there."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from attnlab.config.identity import config_digest
from attnlab.errors import ExperimentError, masked, masked_values
from attnlab.files import atomic_file, atomic_folder, write_json
from attnlab.project import pipeline_command
from attnlab.runs.run_folder import (
    DONE,
    IMAGES,
    LATER_METRICS,
    MODEL,
    OUTBOX,
    STATE,
    UPLOADED,
    RunRecord,
    RunState,
    Status,
    Uploaded,
    places_of_runs,
    read_state,
    read_uploaded,
    step_name,
)
from attnlab.training.spool import RUN_FOLDER, SPOOL_NAME, MetricSpool

# Seconds without another try after an upload failed: training does not wait for it again and again
PAUSE = 300.0


class Run:
    """A run, open from `start` to `finish`; as a context manager it finishes itself.

    Whatever it is given is on disk when a call returns; `uploader` copies it to MLflow, at once if
    possible. In a forked child that inherits it, it does nothing.

    place: the folder of the experiment, evaluation or sweep; `folder` in it is the run's own.
    uploader: `upload_run` with a connection; None where nothing is uploaded.
    stop_monitor: ends the sampling of system metrics, where there is any.
    """

    def __init__(self, place: Path, state: RunState, uploader: Uploader | None = None) -> None:
        self.place = place
        self.folder = place / RUN_FOLDER
        self.state = state
        self.uploaded = read_uploaded(place)
        self.stop_monitor: Callable[[], None] | None = None
        self._uploader = uploader
        self._process: int | None = os.getpid()
        self._finished = False
        self._try_again_at = 0.0

    @classmethod
    def start(
        cls,
        place: Path,
        record: RunRecord,
        origin: Callable[[], Mapping[str, str]] = dict,
        log_model: bool = False,
        uploader: Uploader | None = None,
    ) -> Self:
        """Start the run of a place, or open again the one that it has.

        origin: is called for a run that starts for the first time.

        Raises ExperimentError where a file of the run is damaged, or cannot be written.
        """
        record = RunRecord(**masked_values(vars(record)))
        before = read_state(place)
        if before is None:
            state = RunState(record, origin(), log_model, started=_now())
        else:
            record = record.after(before.record)
            ended = before.ended if before.status == "FINISHED" else None
            # Another sweep has compared nothing yet.
            is_of_same_sweep = record.sweep == before.record.sweep
            state = replace(
                before,
                record=record,
                log_model=log_model,
                status=None,
                error=None,
                verdict=before.verdict if is_of_same_sweep else None,
                ended=ended,
            )
        run = cls(place, state, uploader)
        run._write()
        # All is compared again: there may be news, or the run was deleted in MLflow
        if run.uploaded is not None:
            run.note_uploaded(replace(run.uploaded, state=""))
        return run

    @classmethod
    def read(cls, place: Path, uploader: Uploader | None = None) -> Self | None:
        """The run that a place has; None where it has none.

        Raises ExperimentError for a damaged file.
        """
        state = read_state(place)
        return None if state is None else cls(place, state, uploader)

    @property
    def run_id(self) -> str | None:
        """MLflow's id of the run; None until MLflow has it."""
        return None if self.uploaded is None else self.uploaded.run_id

    @property
    def comparison(self) -> str | None:
        """What its description says of the comparison; None where it says nothing."""
        return self.state.comparison

    @property
    def pending(self) -> bool:
        """Whether it has ended and MLflow lacks something of it."""
        has_ended = self.state.status is not None
        return has_ended and (not self.is_described or self.has_outbox)

    @property
    def has_outbox(self) -> bool:
        """Whether files wait for their upload."""
        return any(True for _ in self.outbox_files())

    def outbox_files(self) -> Iterator[Path]:
        """The files that wait for their upload, in their order; not those being written."""
        outbox = self.folder / OUTBOX
        for path in sorted(outbox.rglob("*")):
            inside = path.relative_to(outbox)
            is_being_written = any(part.startswith(".") for part in inside.parts)
            if path.is_file() and not is_being_written:
                yield path

    @property
    def is_described(self) -> bool:
        """Whether MLflow has the present state."""
        return self.uploaded is not None and self.uploaded.state == self.digest()

    def digest(self) -> str:
        """SHA-256 of the state; how far the spool is safe is no part of it."""
        state = {**asdict(self.state), "safe_offset": None}
        for name in ("comparison", "verdict"):
            if state[name] is None:  # as of runs that were uploaded before there was any
                del state[name]
        return config_digest(state)

    @property
    def model(self) -> Path | None:
        """The folder of the trained model, where it belongs to the run."""
        if self.state.status != "FINISHED" or not self.state.log_model:
            return None
        folder = self.place / MODEL
        return folder if folder.is_dir() else None

    def spools(self) -> list[tuple[MetricSpool, int | None]]:
        """The spools of the training and of the metrics after it.

        Each comes with the offset up to which it may be uploaded.
        """
        of_training = MetricSpool(self.place / SPOOL_NAME)
        return [(of_training, self.state.safe_offset), (self._later_spool(), None)]

    def _later_spool(self) -> MetricSpool:
        return MetricSpool(self.folder / LATER_METRICS, "remove it, and evaluate again")

    def log_metrics(
        self, metrics: Mapping[str, float], step: int, epoch: int | None = None
    ) -> None:
        """Log metrics of the time after the training, such as those of the test split.

        Metrics that are logged again count once.
        """
        if not self._is_ours():
            return
        spool = self._later_spool()
        records, _ = spool.read()
        logged: dict[str, float] = {}  # the last value of each at this step
        for record in records:
            if record.step == step:
                logged |= record.metrics

        new = {name: value for name, value in metrics.items() if logged.get(name) != value}
        if new:
            spool.append(new, step, epoch)
            spool.close()
            self._upload_unless_paused()

    def log_artifact(self, folder: Path) -> None:
        """A folder with all it holds, under its own name."""
        if not self._is_ours():
            return
        with atomic_folder(self.folder / OUTBOX / folder.name) as temporary:
            shutil.copytree(folder, temporary, dirs_exist_ok=True)
        self._upload_unless_paused()

    def log_file(self, path: Path, folder: str) -> None:
        """A file under a folder of this name, unless the run has the same one already."""
        if not self._is_ours() or self.has_file(path, folder):
            return
        with atomic_file(self.folder / OUTBOX / folder / path.name) as temporary:
            shutil.copyfile(path, temporary)
        if self.uploaded is not None:
            files = {**self.uploaded.files, f"{folder}/{path.name}": _digest(path)}
            self.note_uploaded(replace(self.uploaded, files=files))
        self._upload_unless_paused()

    def has_file(self, path: Path, folder: str) -> bool:
        """Whether `log_file` was given the same one before."""
        files = {} if self.uploaded is None else self.uploaded.files
        return files.get(f"{folder}/{path.name}") == _digest(path)

    def log_images(self, section: str, time: float, write: Callable[[Path], None]) -> None:
        """Pictures that MLflow shows beside those of other runs, under `section` and their names.

        time: when what they show was made, in seconds since 1970; the same picture of the same time
            is logged once.
        write: writes them into a folder that is there.
        """
        if not self._is_ours():
            return
        with atomic_folder(self.folder / OUTBOX / IMAGES / section / step_name(0)) as temporary:
            write(temporary)
            for path in temporary.iterdir():
                os.utime(path, (time, time))
        self._upload_unless_paused()

    def upload_new(self, safe_offset: int | None = None) -> None:
        """Upload what is new. A tracker that cannot be reached is a warning and a later retry.

        safe_offset: how far the spool may be uploaded (see `RunState`).
        """
        if self._is_ours():
            self.change(safe_offset=safe_offset)
            self._upload_unless_paused()

    def finish(self, status: Status = "FINISHED", error: str | None = None) -> None:
        """Note how the run ended, and upload the rest; a second call does nothing.

        Raises ExperimentError where the end cannot be written to the disk.
        """
        if not self._is_ours() or self._finished:
            return
        self._finished = True
        if self.stop_monitor is not None:
            self.stop_monitor()
        all_is_safe = status == "FINISHED" or (self.place / DONE).is_file()
        ended_before = self.state.ended if status == "FINISHED" else None
        try:
            self.change(
                status=status,
                error=None if error is None else masked(error),
                ended=ended_before or _now(),
                safe_offset=None if all_is_safe else self.state.safe_offset,
            )
        finally:  # on a full disk, MLflow gets to know it all the same
            self._upload_unless_paused(at_the_end=True)

    def note_uploaded(self, uploaded: Uploaded) -> None:
        """Note how much MLflow has."""
        self.uploaded = uploaded
        if self.folder.is_dir():
            write_json(self.folder / UPLOADED, asdict(uploaded))

    def change(self, **changes: Any) -> None:
        """Set fields of the state, and write it where it is another one."""
        if not self._is_ours():
            return
        changed = replace(self.state, **changes)
        if changed == self.state:
            return
        self.state = changed
        if (self.folder / STATE).is_file():  # somebody may have removed the folder
            self._write()

    def _write(self) -> None:
        try:
            write_json(self.folder / STATE, asdict(self.state))
        except OSError as error:
            raise ExperimentError(
                f"{self.folder / STATE} could not be written: {error.strerror}; make room there, "
                "or allow it, and give the same command again"
            ) from error

    def _upload_unless_paused(self, at_the_end: bool = False) -> None:
        """Upload what is new, unless it failed a short while ago; a failure is a warning.

        at_the_end: whether this is the last call, which does not wait for the end of the pause.
        """
        is_paused = time.monotonic() < self._try_again_at and not at_the_end
        if self._uploader is None or is_paused:
            return
        problem = self._uploader(self)
        if problem is None:
            return

        self._try_again_at = time.monotonic() + PAUSE
        warning = f"warning: {problem}"
        if (self.folder / STATE).is_file():
            warning += (
                "; everything is on disk, and the same command again or "
                f"{pipeline_command('deliver')} uploads it"
            )
        print(warning, file=sys.stderr)

    def _is_ours(self) -> bool:
        return os.getpid() == self._process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
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
            print(
                f"warning: how the run ended could not be written down: {another}", file=sys.stderr
            )


# Uploads what MLflow lacks of a run; returns why something is still missing, None where all is
# there.
Uploader = Callable[[Run], str | None]


class InactiveRun(Run):
    """A run that records nothing and belongs to no process.

    It stands for a run where tracking is off, or where its tracker already has all of it.
    """

    def __init__(self, uploaded: Uploaded | None = None) -> None:
        self.uploaded, self._process = uploaded, None

    @property
    def comparison(self) -> None:
        return None


def close_runs(place: Path, uploader: Uploader | None = None) -> None:
    """Close the runs in the folder of an experiment or a sweep, so that it can be cleared.

    The caller holds the lock of the folder. Runs whose processes were killed are closed; what
    MLflow lacks is uploaded.

    Raises ExperimentError where MLflow lacks something of a run, and there is no `uploader`, or it
    failed.
    """
    for inside in places_of_runs(place):
        run = Run.read(inside)
        assert run is not None
        has_metrics = any(spool.size() for spool, _ in run.spools())
        if run.state.status is None and (run.uploaded is not None or has_metrics):
            written = int((run.folder / STATE).stat().st_mtime * 1000)
            run.change(status="KILLED", error="stopped before it was finished", ended=written)
        if run.pending:
            run.change(safe_offset=None)  # no training goes on with it
            problem = "tracking is off" if uploader is None else uploader(run)
            if problem is not None:
                raise ExperimentError(
                    f"MLflow lacks metrics or files of an earlier run in {run.folder} ({problem}); "
                    f"upload them with {pipeline_command('deliver')}, or remove that folder, and "
                    "give the same command again"
                )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _now() -> int:
    return time.time_ns() // 1_000_000
