"""A run in MLflow: started once per experiment, reopened by its id, fed from the experiment's folder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import requests
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_RUN_NOTE
from sqlalchemy.exc import SQLAlchemyError

from attnlab.errors import ExperimentError
from attnlab.tracking.address import masked, scrubbed
from attnlab.tracking.database import Store, knock, open_store, refusal
from attnlab.tracking.delivery import Delivery
from attnlab.tracking.described_run import describe, run_tags
from attnlab.tracking.flatten import readable_name, short_params
from attnlab.tracking.kept_run import SET_ASIDE, ending, keep, safe_up_to, started_at, told_up_to
from attnlab.tracking.model import folder_digest, log_model
from attnlab.tracking.outbox import OUTBOX, keep_artifact, keep_metrics, later_metrics
from attnlab.tracking.run import Run, Status
from attnlab.tracking.settings import MlflowTracking, RunRecord
from attnlab.tracking.stored_run import run_to_adopt, store_run, stored_run
from attnlab.tracking.system_metrics import SystemMetrics
from attnlab.training.spool import SPOOL_NAME, MetricSpool

PAUSE = 60.0  # seconds without another try after the tracker was lost; each time it is not back, twice as long
LONGEST_PAUSE = 1800.0

METRICS = "metrics and pictures"
LOST = (MlflowException, SQLAlchemyError, requests.RequestException, OSError)


class TrackedRun(Run):
    """See `Run`. In a forked child that inherits it it does nothing: MLflow is the starting process's."""

    def __init__(self, store: Store, run_id: str, point: Path, settings: MlflowTracking) -> None:
        self.run_id: str = run_id
        self.outbox: Path = point / OUTBOX
        self._store = store
        self._settings = settings
        self._point = point
        self._delivery = Delivery(store.client, run_id, point)
        self._spool, self._later = MetricSpool(point / SPOOL_NAME), later_metrics(point)
        if point.parent.name == SET_ASIDE:  # it was trained anew since
            self._spool.remedy = self._later.remedy = f"remove {point}, and it is told no more"
        self._monitor: SystemMetrics | None = None
        self._process = os.getpid()
        self._finished = False
        self._try_again_at, self._pause = 0.0, PAUSE
        self.owed: set[str] = set()  # what the tracker was not told
        # How far the spool may be handed over where the run ends before it is finished: what lies behind is written
        # again, with other times, by the training that goes on from the last checkpoint. None: all of it.
        self._up_to = safe_up_to(point)
        # When it was finished before; where it has nothing new to tell, it is not finished anew.
        self._ended: int | None = None
        # Of a run of the past that is told now.
        self.really_ended: int | None = None
        self._note: str | None = None

    @classmethod
    def start(cls, settings: MlflowTracking, runs_folder: Path, point: Path, record: RunRecord) -> TrackedRun:
        """Start or reopen; see `Tracking.start`."""
        store = open_store(settings.uri, settings.experiment, runs_folder)
        try:
            # Where a sweep names its points, a name for all of them tells none apart.
            name = masked(" · ".join(filter(None, (settings.run_name, record.name)))) or None
            known, orphan = stored_run(store, point), run_to_adopt(store, record)
            if known is None:
                known = orphan
                if known is None:
                    first = name or masked(record.default_name or readable_name(short_params(record.config)))
                    known = store.client.create_run(store.experiment_id, started_at(point), run_tags(record), first)
                store_run(point, known)
            elif orphan is not None and orphan.info.run_id != known.info.run_id:
                store.client.delete_run(orphan.info.run_id)
            store.client.update_run(known.info.run_id, status="RUNNING", name=name)
            if "error" in known.data.tags:
                store.client.delete_tag(known.info.run_id, "error")  # of an earlier try
            run = cls(store, known.info.run_id, point, settings)
            run._note = known.data.tags.get(MLFLOW_RUN_NOTE)
            if known.info.status == "FINISHED":
                run._ended = known.info.end_time
            describe(store.client, known, record)
            if settings.system_metrics:
                run._monitor = SystemMetrics(run.run_id, store.uri)
                run._monitor.start()
            return run
        except LOST as error:
            raise refusal(store.uri, error) from None

    def log_metrics(self, metrics: Mapping[str, float], step: int, epoch: int | None = None) -> None:
        if self._is_ours() and keep_metrics(self._point, metrics, step, epoch):
            self.deliver()

    def log_artifact(self, path: Path, folder: str = "") -> None:
        keep_artifact(self._point, path, folder)
        self.deliver()

    def describe(self, text: str) -> None:
        if self._is_ours():
            if text != self._note:
                self._ended = None
            keep(self._point, note=text)
            self._tell("the description", lambda: self._store.client.set_tag(self.run_id, MLFLOW_RUN_NOTE, text))

    def log_model(self, folder: Path) -> None:
        if self._settings.log_model and self._is_ours():
            self._tell("the model", lambda: self._log_model(folder))

    def _log_model(self, folder: Path) -> None:
        digest = folder_digest(folder)
        if self._store.client.get_run(self.run_id).data.tags.get("model_hash") != digest:
            log_model(self._store.client, self.run_id, folder)
            self._store.client.set_tag(self.run_id, "model_hash", digest)

    def deliver(self, up_to: int | None = None) -> None:
        self._up_to = up_to
        if self._is_ours() and time.monotonic() >= self._try_again_at:
            self._deliver(up_to)

    def finish(self, status: Status = "FINISHED", error: str | None = None) -> None:
        if self._finished or not self._is_ours():
            return
        self._finished = True
        if self._monitor is not None:
            self._monitor.finish()
        if status == "FINISHED" and (self._point / "model").is_dir():
            # Also where it is evaluated: while it was trained the tracker may have been away.
            self.log_model(self._point / "model")
        up_to = told_up_to(self._point, status, self._up_to)
        try:
            keep(self._point, **ending(status, error, up_to, self._store.uri, self.really_ended))
        finally:  # where the disk is full, the tracker is told all the same
            self._tell_the_end(status, error, up_to)
        if not self.owed:
            keep(self._point, told=True)

    def _tell_the_end(self, status: Status, error: str | None, up_to: int | None) -> None:
        try:
            self._deliver(up_to)
        except ExperimentError as damage:
            # The run has ended as it has; its state at least is told.
            self.owed.add(METRICS)
            print(f"warning: {damage}", file=sys.stderr)
        self._tell("the state", lambda: self._close(status, error))

    def _close(self, status: Status, error: str | None) -> None:
        if error is not None:
            self._store.client.set_tag(self.run_id, "error", scrubbed(error, self._store.uri)[:5000])
        ended = self.really_ended or (self._ended if status == "FINISHED" else None)
        self._store.client.set_terminated(self.run_id, status, ended)

    def _deliver(self, up_to: int | None) -> None:
        if self._tell(METRICS, lambda: self._hand_over(up_to)):
            self._try_again_at, self._pause = 0.0, PAUSE
        else:
            # It may stay away for hours: training does not wait for it again and again.
            self._try_again_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _hand_over(self, up_to: int | None) -> None:
        if any([self._delivery.metrics(self._spool, up_to), self._delivery.metrics(self._later)]):
            self._ended = None
        self._delivery.artifacts()

    def _tell(self, what: str, call: Callable[[], object]) -> bool:
        """Turn a tracker's failure into a warning: what was computed is worth more than its record."""
        try:
            knock(self._store.uri)  # MLflow would try for half a minute
            call()
        except LOST as error:
            self.owed.add(what)
            reason = scrubbed(str(error).strip().split("\n")[0], self._store.uri)
            print(
                f"warning: {masked(self._store.uri)}: {reason}; {what} could not be delivered; all is kept on "
                f"disk, and the same command again or pipelines/deliver.py delivers it",
                file=sys.stderr,
            )
            return False
        self.owed.discard(what)
        return True

    def _is_ours(self) -> bool:
        return os.getpid() == self._process
