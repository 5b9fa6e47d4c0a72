"""Addresses: where they lead, and that no password of them is shown."""

import pytest

from attnlab.runs.mlflow_variables import (
    environment_note,
    uri_of_environment,
    with_environment,
)


def test_relative_sqlite_path_counts_from_the_folder_that_holds_the_runs(tracking, tmp_path):
    runs = tmp_path / "runs"
    assert tracking().address(runs) == f"sqlite:///{runs}/mlflow.db"
    assert tracking(uri="sqlite:///other/a.db").address(runs) == f"sqlite:///{tmp_path}/other/a.db"
    assert tracking(uri="sqlite:////var/a.db").address(runs) == "sqlite:////var/a.db"
    assert tracking(uri="http://host").address(runs) == "http://host"


def test_where_to_look_gives_a_command_bound_to_this_machine_and_the_page_of_the_runs(
    tracking, runs, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    command, page = tracking(experiment="template").where_to_look(runs).split("\n")
    assert command.startswith("MLFLOW_DISABLE_TELEMETRY=true ")
    assert command.endswith(
        "mlflow server --backend-store-uri sqlite:///runs/mlflow.db --host 127.0.0.1 --port 5000"
    )
    assert page == "open http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning"
    # Before there are runs
    assert tracking().where_to_look(tmp_path).endswith("\nopen http://127.0.0.1:5000/")
    server = tracking(uri="http://me:hunter2@host:5000")
    assert server.where_to_look(runs) == "open http://me:***@host:5000"


SECTION = {"uri": None, "experiment": None, "note": None}


def test_environment_says_where_to_track_what_the_config_leaves_open(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:secret@host:5000")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "paper")
    found = with_environment(SECTION)
    assert found == {"uri": "http://user:secret@host:5000", "experiment": "paper", "note": None}
    assert "secret" not in environment_note(SECTION)

    chosen = {"uri": "sqlite:///here.db", "experiment": "mine", "note": None}
    assert with_environment(chosen) == chosen
    assert environment_note(chosen) is None
    assert environment_note({"_target_": "attnlab.runs.tracking.NoTracking"}) is None


@pytest.mark.parametrize("empty", [None, ""])
def test_environment_without_values_decides_nothing(monkeypatch, empty):
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
        if empty is not None:
            monkeypatch.setenv(name, empty)
    assert with_environment(SECTION) == SECTION
    assert environment_note(SECTION) is None


def test_relative_database_of_the_environment_counts_from_the_project(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///runs/mlflow.db")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    assert uri_of_environment() == f"sqlite:///{tmp_path}/runs/mlflow.db"
    monkeypatch.setenv("DVC_ROOT", "/project")
    assert uri_of_environment() == "sqlite:////project/runs/mlflow.db"
