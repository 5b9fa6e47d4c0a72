"""Runs whose processes are gone: closed, or told what they could not tell."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from attnlab.errors import ExperimentError
from attnlab.tracking.database import open_store
from attnlab.tracking.kept_run import KeptRun
from attnlab.tracking.run import Status
from attnlab.tracking.settings import MlflowTracking
from attnlab.tracking.tracked_run import LOST, TrackedRun


def tell(settings: MlflowTracking, runs_folder: Path, point: Path, kept: KeptRun) -> bool:
    """Deliver what a run of the past left untold, and close it as it ended; False where something stays untold.

    Raises:
        ExperimentError: the tracker cannot be reached or refuses, or a file of the run is damaged.
    """
    assert kept.status is not None
    run = TrackedRun.start(replace(settings, system_metrics=False), runs_folder, point, kept.record)
    run.really_ended = kept.ended
    try:
        run.deliver(kept.up_to)
        if kept.note is not None:
            run.describe(kept.note)
    finally:  # where its metrics are damaged, the tracker must not believe that it goes on
        run.finish(kept.status, kept.error)
    return not run.owed


def end_run(settings: MlflowTracking, runs_folder: Path, run_id: str, status: Status, error: str) -> None:
    """See `Tracking.end`."""
    try:
        client = open_store(settings.uri, settings.experiment, runs_folder).client
        client.set_tag(run_id, "error", error)
        client.set_terminated(run_id, status)
    except (*LOST, ExperimentError) as lost:
        print(f"warning: the run {run_id} was not closed: {str(lost).splitlines()[0]}", file=sys.stderr)
