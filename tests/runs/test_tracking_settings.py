"""Addresses: where they lead, and that no password of them is shown."""

import json
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from attnlab.runs.mlflow_variables import (
    environment_note,
    uri_of_environment,
    with_environment,
)
from attnlab.runs.tracking import NoTracking
from attnlab.tasks.classification.task import Classification
from attnlab.tasks.translation.task import Translation


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
    workflow = "workflowType=machine_learning"
    charts = f"#/experiments/1/runs?{workflow}&compareRunsMode=CHART"
    assert page == f"open http://127.0.0.1:5000/{charts}"
    # Before there are runs
    first = tracking().where_to_look(tmp_path)
    assert first.endswith(f"\nopen http://127.0.0.1:5000/#/experiments?{workflow}")
    server = tracking(uri="http://me:hunter2@host:5000")
    assert server.where_to_look(runs) == f"open http://me:***@host:5000/#/experiments?{workflow}"


def test_where_to_look_names_the_view_of_the_task_where_the_experiment_has_it(
    tracking, runs, point, record
):
    with tracking().start(runs, point, replace(record, view=Translation.view)):
        pass

    def page(view):
        return tracking().where_to_look(runs, view).rpartition("&")[2]

    assert page(Translation.view) == "viewStateShareKey=attnlab-translation"
    assert page(Classification.view) == "compareRunsMode=CHART"
    shown = tracking(experiment="template").where_to_look(runs, Translation.view)
    assert shown.endswith("compareRunsMode=CHART")


@pytest.fixture
def server():
    """The address of what answers MLflow's question for an experiment as its server does."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            known = self.path.endswith("/experiments/get-by-name?experiment_name=attnlab")
            self.send_response(200 if known else 404)
            self.end_headers()
            tags = [{"key": "mlflow.sharedViewState.attnlab-translation", "value": "{}"}]
            answer = {"experiment": {"experiment_id": "7", "tags": tags}}
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as listening:
        thread = Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


def test_where_to_look_asks_a_server_for_the_experiment(tracking, runs, server):
    shown = tracking(uri=server).where_to_look(runs, Translation.view)
    assert shown == (
        f"open {server}/#/experiments/7/runs?workflowType=machine_learning&compareRunsMode=CHART"
        "&viewStateShareKey=attnlab-translation"
    )
    unknown = tracking(uri=server, experiment="new").where_to_look(runs, Translation.view)
    assert unknown == f"open {server}/#/experiments?workflowType=machine_learning"


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


def test_page_of_a_run_is_on_its_server_or_on_the_one_that_the_command_starts(tracking, runs):
    local = tracking()
    assert local.run_page(runs, "5e6f") == "http://127.0.0.1:5000/#/runs/5e6f"
    assert "http://127.0.0.1:5000/" in local.where_to_look(runs)
    server = tracking(uri="http://me:hunter2@host:5000/base/")
    assert server.run_page(runs, "5e6f") == "http://me:***@host:5000/base/#/runs/5e6f"
    assert NoTracking().run_page(runs, "5e6f") is None
    assert NoTracking().server_command(runs) is None


def test_page_of_a_run_in_a_database_is_one_for_those_who_train_models(
    tracking, runs, point, record
):
    with tracking().start(runs, point, record) as run:
        pass
    page = tracking().run_page(runs, run.run_id)
    place = f"#/experiments/2/runs/{run.run_id}?workflowType=machine_learning"
    assert page == f"http://127.0.0.1:5000/{place}"


def test_port_of_the_server_is_that_of_mlflows_variable(tracking, runs, monkeypatch):
    monkeypatch.setenv("MLFLOW_PORT", "5055")
    assert tracking().server_command(runs).endswith(" --host 127.0.0.1 --port 5055")
    assert "\nopen http://127.0.0.1:5055/#/" in tracking().where_to_look(runs)
    assert tracking().run_page(runs, "5e6f").startswith("http://127.0.0.1:5055/#/")
    assert tracking(uri="http://host:7000").server_command(runs) is None
