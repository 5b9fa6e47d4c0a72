"""Addresses: which are allowed, where they lead, and that no password of them is shown."""

from pathlib import Path

import pytest

from attnlab.tracking.address import resolved_address, sqlite_path, where_to_look


@pytest.mark.parametrize(
    "uri", ["http://host:5000", "https://host/mlflow", "sqlite:///x.db", "postgresql+psycopg2://h/d?sslmode=require"]
)
def test_servers_and_databases_are_allowed(tracking, uri):
    assert tracking(uri=uri).uri == uri


@pytest.mark.parametrize("uri", ["", "runs", "localhost:5000", "file:///tmp/mlruns", "ftp://me:hunter2@host"])
def test_unknown_scheme_is_refused_with_the_known_ones(tracking, uri):
    with pytest.raises(ValueError, match=r"^uri must be null .*sqlite:///.*got ") as refused:
        tracking(uri=uri)
    assert "hunter2" not in str(refused.value)


def test_sqlite_paths_count_from_the_folder_that_holds_the_runs(tmp_path):
    runs = tmp_path / "runs"
    assert sqlite_path(None, runs) == runs / "mlflow.db"
    assert sqlite_path("sqlite:///other/a.db", runs) == tmp_path / "other" / "a.db"
    assert sqlite_path("sqlite:////var/a.db", runs) == Path("/var/a.db")
    assert resolved_address(None, runs) == f"sqlite:///{runs}/mlflow.db"
    assert resolved_address("http://host", runs) == "http://host"


def test_command_to_look_is_bound_to_this_machine(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, page = where_to_look(None, "template", runs).split("\n")
    assert command.startswith("MLFLOW_DISABLE_TELEMETRY=true ")
    assert command.endswith("mlflow server --backend-store-uri sqlite:///runs/mlflow.db --host 127.0.0.1 --port 5000")
    assert page == "open http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning"


def test_page_to_look_at_before_there_are_runs_and_on_a_server(tmp_path):
    assert where_to_look(None, "attnlab", tmp_path).endswith("\nopen http://127.0.0.1:5000/")
    assert where_to_look("http://me:hunter2@host:5000", "attnlab", tmp_path) == "open http://me:***@host:5000"
