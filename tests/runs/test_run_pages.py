"""Addresses of MLflow's pages of runs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from attnlab.runs.run_pages import run_pages
from attnlab.runs.tracking import MlflowTracking, NoTracking


def tracking(uri: str | None) -> MlflowTracking:
    return MlflowTracking(uri, "attnlab", None, False, 0, False, "refuse")


@pytest.mark.parametrize(
    ("port", "server"), [("", "http://127.0.0.1:5000"), ("5055", "http://127.0.0.1:5055")]
)
def test_pages_of_a_database_are_those_of_the_local_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: str, server: str
) -> None:
    monkeypatch.setenv("MLFLOW_PORT", port)
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        database.execute("CREATE TABLE runs (run_uuid TEXT, experiment_id INTEGER)")
        database.execute("INSERT INTO runs VALUES ('a1', 7)")
    found = run_pages(tracking(None), tmp_path, ["a1", "unknown"])
    page = "#/experiments/7/runs/a1?workflowType=machine_learning"
    assert found == {"a1": f"{server}/{page}"}


def test_pages_are_missing_without_a_tracker_that_answers(tmp_path: Path) -> None:
    assert run_pages(NoTracking(), tmp_path, ["a1"]) == {}
    assert run_pages(tracking(None), tmp_path, ["a1"]) == {}  # there is no database
    assert run_pages(tracking("http://127.0.0.1:9"), tmp_path, ["a1"]) == {}
    assert not (tmp_path / "mlflow.db").exists()
