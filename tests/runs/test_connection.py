"""The tracker: created once when many processes start, and refused in a sentence within seconds."""

import os
import socket
import subprocess
import sys
import time

import pytest

from attnlab.errors import ExperimentError

START = """
import sys
from pathlib import Path
from attnlab.runs.connection import Connection
runs = Path(sys.argv[1])
Connection(f"sqlite:///{runs}/mlflow.db", "attnlab", runs / "mlflow-artifacts").open()
"""


def test_processes_that_start_together_create_one_database_and_print_nothing(tracking, tmp_path):
    folder = tmp_path / "runs"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")
    }
    command = [sys.executable, "-c", START, str(folder)]
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(3)
    ]
    said = [process.communicate(timeout=100)[0].decode() for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert said == ["", "", ""]
    client = tracking().connection(folder).open()
    assert sorted(found.name for found in client.search_experiments()) == ["Default", "attnlab"]
    assert (
        client.get_experiment_by_name("attnlab").artifact_location
        == (folder / "mlflow-artifacts").as_uri()
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        ".mlflow.lock",
        "mlflow.db",
        "place.json",
    ]


@pytest.fixture
def silent_server():
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def refusal(tracking, tmp_path):
    """The sentence with which an address is refused."""

    def refused(uri):
        begin = time.monotonic()
        with pytest.raises(ExperimentError) as caught:
            tracking(uri=uri).connection(tmp_path).open()
        assert time.monotonic() - begin < 25
        message = str(caught.value)
        assert message.startswith("tracking.uri: ")
        assert "tracking=none" in message
        assert "hunter2" not in message
        assert "\n" not in message
        return message

    return refused


def test_absent_server_is_refused_without_its_password(refusal):
    message = refusal("http://me:hunter2@127.0.0.1:9")
    assert "http://me:***@127.0.0.1:9 cannot be used" in message
    assert "Connection refused" in message
    assert "refused" in refusal("mysql+pymysql://me:hunter2@127.0.0.1:9/x")


@pytest.mark.parametrize(
    "uri", ["", "runs", "localhost:5000", "file:///tmp/mlruns", "ftp://me:hunter2@host"]
)
def test_address_that_mlflow_does_not_know_is_refused(uri, refusal):
    with pytest.raises(ValueError, match="uri must be the address of a server or a database"):
        refusal(uri)


def test_silent_server_is_refused(silent_server, refusal, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    assert "timed out" in refusal(f"http://me:hunter2@{silent_server}")


def test_file_that_is_no_database_is_refused(tmp_path, refusal):
    (tmp_path / "mlflow.db").write_text("this is no database, whatever its name says" * 30)
    assert "not a database" in refusal(None)


def test_deleted_experiment_is_refused_with_its_restoration(tracking, runs):
    connection = tracking(experiment="gone").connection(runs)
    connection.open().delete_experiment(connection.experiment_id)
    with pytest.raises(ExperimentError, match=r"tracking.experiment: 'gone' was deleted.*restore"):
        tracking(experiment="gone").connection(runs).open()
