"""Addresses of the pages that MLflow has for runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from attnlab.errors import ExperimentError, masked
from attnlab.runs.shared_views import run_page
from attnlab.runs.tracking import MlflowTracking, Tracking, local_server


def run_pages(tracking: Tracking, runs_folder: Path, run_ids: Sequence[str]) -> dict[str, str]:
    """{run id: the address of its page}, of the runs that the tracker has.

    A page of an sqlite database answers while MLflow's own server runs on this machine. A tracker
    that cannot be asked gives no addresses, and no error.
    """
    if not isinstance(tracking, MlflowTracking) or not run_ids:
        return {}
    address = tracking.address(runs_folder)
    if address.startswith("sqlite:///"):
        experiments = _experiments(Path(address.removeprefix("sqlite:///")), run_ids)
        return {run: _page(local_server(), experiments[run], run) for run in experiments}
    if not address.startswith("http"):
        return {}

    from attnlab.runs.stored_runs import StoredRuns  # imports MLflow

    connection = tracking.connection(runs_folder)
    try:
        StoredRuns(connection)
    except ExperimentError:
        return {}
    return {run: _page(masked(address), connection.experiment_id, run) for run in run_ids}


def _page(server: str, experiment: str, run_id: str) -> str:
    return f"{server.rstrip('/')}/{run_page(run_id, experiment)}"


def _experiments(database: Path, run_ids: Sequence[str]) -> dict[str, str]:
    """{run id: the id of its experiment}, of the runs in the database."""
    found = {}
    query = "SELECT experiment_id FROM runs WHERE run_uuid = ?"
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection,
    ):
        for run_id in run_ids:
            row = connection.execute(query, [run_id]).fetchone()
            if row is not None:
                found[run_id] = str(row[0])
    return found
