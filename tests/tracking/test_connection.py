"""The tracker: created once when many processes start, and refused in a sentence within seconds."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import pytest
from mlflow import MlflowClient

from attnlab.errors import ExperimentError
from attnlab.tracking.connection import Connection

START = """
import os, signal, sys
from pathlib import Path
from attnlab import files
from attnlab.tracking.connection import Connection
if len(sys.argv) > 2:
    files.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
Connection(None, "attnlab", Path(sys.argv[1])).open()
"""


def test_processes_that_start_together_create_one_database_and_print_nothing(tmp_path):
    folder = tmp_path / "runs"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")}
    command = [sys.executable, "-c", START, str(folder)]
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(3)
    ]
    said = [process.communicate(timeout=100)[0].decode() for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert said == ["", "", ""]
    client = Connection(None, "attnlab", folder).open()
    assert sorted(found.name for found in client.search_experiments()) == ["Default", "attnlab"]
    assert client.get_experiment_by_name("attnlab").artifact_location == (folder / "mlflow-artifacts").as_uri()
    assert sorted(path.name for path in folder.iterdir()) == [".mlflow.lock", "mlflow.db"]


def test_open_removes_leftovers_of_a_process_killed_while_creating_the_database(tmp_path):
    killed = subprocess.run([sys.executable, "-c", START, str(tmp_path), "kill"], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(tmp_path.glob(".mlflow.db.*"))
    Connection(None, "attnlab", tmp_path).open()
    assert {path.name for path in tmp_path.iterdir()} == {".mlflow.lock", "mlflow.db"}


@pytest.fixture
def silent_server():
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def refusal(uri, runs):
    begin = time.monotonic()
    with pytest.raises(ExperimentError) as caught:
        Connection(uri, "attnlab", runs).open()
    assert time.monotonic() - begin < 20
    message = str(caught.value)
    assert message.startswith("tracking.uri: ")
    assert "tracking=none" in message
    assert "hunter2" not in message
    assert "\n" not in message
    return message


def test_absent_server_is_refused_without_its_password(tmp_path):
    message = refusal("http://me:hunter2@127.0.0.1:9", tmp_path)
    assert "http://me:***@127.0.0.1:9 cannot be used" in message
    assert "Connection refused" in message


def test_silent_server_is_refused(silent_server, tmp_path):
    assert "timed out" in refusal(f"http://me:hunter2@{silent_server}", tmp_path)


def test_database_server_without_its_driver_or_absent_is_refused(tmp_path):
    message = refusal("mysql+pymysql://me:hunter2@127.0.0.1:9/x", tmp_path)
    assert "driver is not installed" in message or "refused" in message


def test_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "mlflow.db").write_text("this is no database, whatever its name says" * 30)
    assert "not a database" in refusal(None, tmp_path)


def test_database_of_another_mlflow_version_is_refused_with_its_migration(runs):
    with sqlite3.connect(runs / "mlflow.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
    assert "mlflow db upgrade" in refusal(None, runs)


def test_database_in_a_folder_that_cannot_be_created_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    refusal(f"sqlite:///{tmp_path}/file/mlflow.db", tmp_path / "runs")


def test_deleted_experiment_is_refused_with_its_restoration(runs):
    connection = Connection(None, "gone", runs)
    connection.open().delete_experiment(connection.experiment_id)
    with pytest.raises(ExperimentError, match=r"tracking.experiment: 'gone' was deleted.*restore"):
        Connection(None, "gone", runs).open()


def test_experiment_created_meanwhile_by_another_machine_is_used(runs, monkeypatch):
    made = Connection(None, "attnlab", runs)
    made.open()
    answers = iter([None])
    real = MlflowClient.get_experiment_by_name
    monkeypatch.setattr(MlflowClient, "get_experiment_by_name", lambda self, name: next(answers, real(self, name)))
    again = Connection(None, "attnlab", runs)
    again.open()
    assert again.experiment_id == made.experiment_id
