"""Addresses: which are allowed, and that no secret of them is shown."""

from pathlib import Path

import pytest

from attnlab.config.secrets import is_secret_name, masked
from attnlab.errors import ExperimentError
from attnlab.tracking.address import (
    resolved_address,
    scrubbed,
    sqlite_path,
    where_to_look,
)

SECRET = "hunter2/ü"
SPELLED = "hunter2%2F%C3%BC"


@pytest.mark.parametrize(
    "uri", ["http://host:5000", "https://host/mlflow", "sqlite:///x.db", "postgresql+psycopg2://h/d"]
)
def test_servers_and_databases_are_allowed(tracking, uri):
    assert tracking(uri=uri).uri == uri


@pytest.mark.parametrize(
    "uri", ["", "runs", "file:///tmp/mlruns", "http://", "http://host:x", "ftp://host", "databricks"]
)
def test_anything_else_is_refused_with_what_is_allowed(tracking, uri):
    with pytest.raises(ValueError, match=r"^uri must be null .*sqlite:///.*got "):
        tracking(uri=uri)


@pytest.mark.parametrize(
    "options",
    ["sslmode=require&sslrootcert=/etc/ca.pem&connect_timeout=5", "host=/var/run/postgresql&sslkey=my.key", ""],
)
def test_a_database_takes_options_of_connections(tracking, options):
    uri = f"postgresql+psycopg2://u@h/d?{options}"
    assert tracking(uri=uri).uri == uri


NO_OPTION = "must have no option but"


@pytest.mark.parametrize(
    ("uri", "said"),
    {
        "postgresql+psycopg2://h/d?sslkey=theirs.so:k": "without a colon",
        "postgresql+psycopg2://h/d?sslkey=my.key&sslkey=theirs.so:k": "without a colon",
        "postgresql+psycopg2://h/d?sslkey=theirs.so%3Ak": "without a colon",
        "postgresql+psycopg2://h/d?sslk%65y=theirs.so": NO_OPTION,
        "postgresql+psycopg2://h/d?p%61ssword=hunter2": NO_OPTION,
        "postgresql+psycopg2://h/password=?p%61ssword=hunter2": NO_OPTION,
        "postgresql+psycopg2://h/x&password=?p%61ssword=hunter2": NO_OPTION,
        "postgresql+psycopg2://h/d?options=-c%20session_preload_libraries%3Dtheirs.so": NO_OPTION,
        "postgresql+psycopg2:///d?host=elsewhere": "must name the host before the database",
        "POSTGRESQL://h/d": "must be null",
        "http://h/\x1b]0;x\x07": "must be on one line",
        "sqlite:///a\nb.db": "must be on one line",
        "postgresql+psycopg2://h/d?service=theirs": NO_OPTION,
        "postgresql+psycopg2://h/d?passfile=.pgpass": NO_OPTION,
        "postgresql://h/d?plugin=theirs": NO_OPTION,
        "mysql://h/d?plugin_dir=theirs&default_auth=notes": NO_OPTION,
        "mysql+pymysql://h/d?read_default_file=theirs.cnf": NO_OPTION,
        "mysql+pymysql://h/d?local_infile=1": NO_OPTION,
        "sqlite:///x.db?vfs=theirs": "must be sqlite:///<file>.db",
        "sqlite:///x?vfs=theirs.db": "must be sqlite:///<file>.db",
        "sqlite:////home/me/.vimrc": "must be sqlite:///<file>.db",
        "sqlite://": "must be sqlite:///<file>.db",
        "postgresql+psycopg2://h:x/d": "must have the form",
    }.items(),
)
def test_no_option_loads_code_or_sends_files(tracking, uri, said):
    with pytest.raises(ValueError, match=f"^uri .*{said}") as caught:
        tracking(uri=uri)
    assert "hunter2" not in str(caught.value)


def test_a_refused_address_does_not_show_its_password(tracking):
    with pytest.raises(ValueError, match="uri must") as caught:
        tracking(uri=f"ftp://me:{SPELLED}@host")
    assert "hunter2" not in str(caught.value)


def test_sqlite_paths_count_from_the_folder_that_holds_the_runs(tmp_path):
    runs = tmp_path / "runs"
    assert sqlite_path(None, runs) == runs / "mlflow.db"
    assert sqlite_path("sqlite:///other/a.db", runs) == tmp_path / "other" / "a.db"
    assert sqlite_path("sqlite:////var/a.db", runs) == Path("/var/a.db")
    assert resolved_address(None, runs) == f"sqlite:///{runs}/mlflow.db"
    assert resolved_address("http://host", runs) == "http://host"


def test_a_database_is_no_link_to_something_else(tmp_path):
    (tmp_path / "start-up").touch()
    (tmp_path / "x.db").symlink_to(tmp_path / "start-up")
    with pytest.raises(ExperimentError, match=r"tracking.uri: .*x.db leads to .*start-up, which is no .db"):
        resolved_address("sqlite:///x.db", tmp_path / "runs")
    (tmp_path / "y.db").symlink_to(tmp_path / "big.sqlite")
    assert resolved_address("sqlite:///y.db", tmp_path / "runs") == f"sqlite:///{tmp_path}/y.db"


def test_credentials_vanish_from_texts_in_any_spelling():
    assert (
        masked(f"see https://me:{SPELLED}@host/x?a=1&password=abc&b=2") == "see https://***@host/x?a=1&password=***&b=2"
    )
    message = f"login failed for 'me' with {SECRET} ({SPELLED})"
    assert "hunter2" not in scrubbed(message, f"postgresql+psycopg2://me:{SPELLED}@host/db")


def test_secret_names_are_known_and_tokens_of_text_are_none():
    assert all(is_secret_name(key) for key in ["tracking.password", "a.api_key", "hf_token", "db_password", "x.secret"])
    assert not any(is_secret_name(key) for key in ["data.tokenizer", "max_tokens", "unk_token", "data.key", "key_size"])


def test_the_command_to_look_is_bound_to_this_machine(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, page = where_to_look(None, "template", runs).split("\n")
    assert command.startswith("MLFLOW_DISABLE_TELEMETRY=true ")
    assert command.endswith("mlflow server --backend-store-uri sqlite:///runs/mlflow.db --host 127.0.0.1 --port 5000")
    assert page == "open http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning"


def test_where_to_look_before_there_are_runs_and_on_a_server(tmp_path):
    assert where_to_look(None, "attnlab", tmp_path).endswith("\nopen http://127.0.0.1:5000/")
    assert where_to_look(f"http://me:{SPELLED}@host:5000", "attnlab", tmp_path) == "open http://***@host:5000"
