"""The store: made once when many start, and refused in a sentence within seconds."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import pytest

from attnlab.errors import ExperimentError
from attnlab.tracking.database import open_store

START = """
import sys
from pathlib import Path
from attnlab.tracking.database import open_store
open_store(None, "attnlab", Path(sys.argv[1]))
"""


def test_processes_that_start_at_once_on_nothing_make_one_database_and_say_nothing(tmp_path):
    folder = tmp_path / "runs"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", START, str(folder)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for _ in range(3)
    ]
    said = [process.communicate(timeout=100)[0].decode() for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert said == ["", "", ""]
    client = open_store(None, "attnlab", folder).client
    assert sorted(found.name for found in client.search_experiments()) == ["Default", "attnlab"]
    assert client.get_experiment_by_name("attnlab").artifact_location == (folder / "mlflow-artifacts").as_uri()
    assert sorted(path.name for path in folder.iterdir()) == [".mlflow.lock", "mlflow.db"]


@pytest.fixture
def silent_server():
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def refusal(uri, runs):
    begin = time.monotonic()
    with pytest.raises(ExperimentError) as caught:
        open_store(uri, "attnlab", runs)
    assert time.monotonic() - begin < 20
    message = str(caught.value)
    assert message.startswith("tracking.uri: ")
    assert "tracking=none" in message
    assert "hunter2" not in message
    assert "\n" not in message
    return message


KILLED_OVER_IT = """
import os
import signal
import sys
from pathlib import Path
from attnlab.config import atomic
from attnlab.tracking.database import open_store

atomic.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
open_store(None, "attnlab", Path(sys.argv[1]))
"""


def test_open_store_removes_leftovers_of_a_process_killed_while_creating_it(tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED_OVER_IT, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(tmp_path.glob(".mlflow.db.*"))
    open_store(None, "attnlab", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {".mlflow.lock", "mlflow.db"}


def test_a_server_that_is_not_there(tmp_path):
    assert "Connection refused" in refusal("http://me:hunter2@127.0.0.1:9", tmp_path)
    assert "***@127.0.0.1:9" in refusal("http://me:hunter2@127.0.0.1:9", tmp_path)


def test_a_server_that_never_answers(silent_server, tmp_path):
    assert "timed out" in refusal(f"http://me:hunter2@{silent_server}", tmp_path)


def test_a_database_server_without_its_driver_or_without_the_server(tmp_path):
    message = refusal("mysql+pymysql://me:hunter2@127.0.0.1:9/x", tmp_path)
    assert "driver is not installed" in message or "refused" in message


def test_a_database_that_is_none(tmp_path):
    (tmp_path / "mlflow.db").write_text("this is no database, whatever its name says" * 30)
    assert "not a database" in refusal(None, tmp_path)


def test_a_database_of_another_version(runs):
    with sqlite3.connect(runs / "mlflow.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
    assert "mlflow db upgrade" in refusal(None, runs)


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    refusal(f"sqlite:///{tmp_path}/file/mlflow.db", tmp_path / "runs")


def test_an_experiment_that_was_deleted(runs):
    store = open_store(None, "gone", runs)
    store.client.delete_experiment(store.experiment_id)
    with pytest.raises(ExperimentError, match=r"tracking.experiment: 'gone' was deleted.*restore"):
        open_store(None, "gone", runs)


def test_an_experiment_that_another_machine_made_meanwhile(runs, monkeypatch):
    from mlflow import MlflowClient

    made = open_store(None, "attnlab", runs)
    answers = iter([None])
    real = MlflowClient.get_experiment_by_name
    monkeypatch.setattr(MlflowClient, "get_experiment_by_name", lambda self, name: next(answers, real(self, name)))
    assert open_store(None, "attnlab", runs).experiment_id == made.experiment_id
