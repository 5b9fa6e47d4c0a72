"""A run whose tracker was not there when it started: all that it tells stays on disk."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from attnlab.tracking.kept_run import beginning, ending, keep, safe_up_to, told_up_to
from attnlab.tracking.origin import origin_tags
from attnlab.tracking.outbox import OUTBOX, keep_artifact, keep_metrics
from attnlab.tracking.run import Run, Status
from attnlab.tracking.settings import RunRecord


class WaitingRun(Run):
    """See `Run`. `attnlab.tracking.past_run.tell` delivers what it kept.

    address: of the tracker that is not there.
    """

    run_id = None

    def __init__(self, point: Path, record: RunRecord, address: str) -> None:
        self._point, self._address = point, address
        self.outbox: Path = point / OUTBOX
        self._up_to = safe_up_to(point)
        self._finished = False
        # The tags of where it comes from are those of now, not of when it is delivered.
        keep(point, **beginning(replace(record, tags={**origin_tags(), **record.tags})))

    def log_metrics(self, metrics: Mapping[str, float], step: int, epoch: int | None = None) -> None:
        keep_metrics(self._point, metrics, step, epoch)

    def log_artifact(self, path: Path, folder: str = "") -> None:
        keep_artifact(self._point, path, folder)

    def describe(self, text: str) -> None:
        keep(self._point, note=text)

    def log_model(self, folder: Path) -> None:
        pass  # it lies in the experiment's folder, where it is found

    def deliver(self, up_to: int | None = None) -> None:
        self._up_to = up_to

    def finish(self, status: Status = "FINISHED", error: str | None = None) -> None:
        if self._finished:
            return
        self._finished = True
        up_to = told_up_to(self._point, status, self._up_to)
        if keep(self._point, **ending(status, error, up_to, self._address)):
            print("the tracker was not told of it; pipelines/deliver.py tells it later", file=sys.stderr)
