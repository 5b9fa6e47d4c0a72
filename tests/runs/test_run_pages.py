"""Addresses of MLflow's pages of runs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from attnlab.runs.run_pages import LOCAL_SERVER, run_pages
from attnlab.runs.tracking import MlflowTracking, NoTracking


def tracking(uri: str | None) -> MlflowTracking:
    return MlflowTracking(uri, "attnlab", None, False, 0, False, "refuse")


def test_pages_of_a_database_are_those_of_the_local_server(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        database.execute("CREATE TABLE runs (run_uuid TEXT, experiment_id INTEGER)")
        database.execute("INSERT INTO runs VALUES ('a1', 7)")
    found = run_pages(tracking(None), tmp_path, ["a1", "unknown"])
    assert found == {"a1": f"{LOCAL_SERVER}/#/experiments/7/runs/a1"}


def test_pages_are_missing_without_a_tracker_that_answers(tmp_path: Path) -> None:
    assert run_pages(NoTracking(), tmp_path, ["a1"]) == {}
    assert run_pages(tracking(None), tmp_path, ["a1"]) == {}  # there is no database
    assert run_pages(tracking("http://127.0.0.1:9"), tmp_path, ["a1"]) == {}
    assert not (tmp_path / "mlflow.db").exists()
