"""Secrets stay where they were given: no byte of them is in what attnlab writes, prints or sends to be kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from entry_points import PIPELINES, TINY, Command, Ended
from hypothesis import example, given
from hypothesis import strategies as st
from servers import free_port, mlflow_server

from attnlab.composition.secrets import HIDDEN, into_environment, literal_secrets, masked

LITERAL, BY_VARIABLE, TOKEN, OTHER = "kanarie-w1-letter", "kanarie-w2-omgeving", "kanarie-w3-teken", "kanarie-w4-elders"
CANARY = "kanarie"
SHORT = (*TINY, "chain=true", "++tracking.log_model=false")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    with mlflow_server(
        folder, "sqlite:///served.db", "--artifacts-destination", str(folder / "kept"), "--workers", "1"
    ) as address:
        yield address
        assert holding(folder) == []


def holding(folder: Path) -> list[str]:
    """The files with a canary in their bytes or names."""
    return sorted(
        str(path)
        for path in folder.rglob("*")
        if CANARY in path.name or (path.is_file() and CANARY.encode() in path.read_bytes())
    )


def tells_nothing(ended: Ended, folder: Path) -> None:
    assert CANARY not in ended.out
    assert CANARY not in ended.err
    assert holding(folder) == []


@pytest.mark.slow
def test_no_secret_is_left_behind(folder: Path, server: str) -> None:
    """At the shell: a run and a sweep, whose every byte is looked at."""
    address = server.removeprefix("http://")
    given = {"THE_ADDRESS": f"http://me:{BY_VARIABLE}@{address}", "HF_TOKEN": TOKEN, "MLFLOW_TRACKING_TOKEN": OTHER}

    def train(*arguments: str) -> None:
        command = [sys.executable, str(PIPELINES / "train.py"), *arguments]
        ended = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        tells_nothing(Ended(ended.returncode, ended.stdout, ended.stderr), folder)

    train(*SHORT, f"tracking.uri=http://me:{LITERAL}@{address}")
    (overrides,) = (folder / "runs" / "plain").rglob(".hydra/overrides.yaml")
    assert f"tracking.uri=http://${{oc.env:ATTNLAB_SECRET_1}}@{address}" in yaml.safe_load(overrides.read_text())
    workers = ("launcher=joblib", "launcher.workers=2")
    train("-m", *SHORT, "seed=1,2", *workers, f"tracking.uri='http://me:{LITERAL}@{address}'")
    train("-m", *SHORT, "seed=3,4", "tracking.uri=${oc.env:THE_ADDRESS}")


FAILURES = {
    "nobody there": (f"tracking.uri=http://me:{LITERAL}@127.0.0.1:{{port}}",),
    "a sweep without a server": ("-m", "seed=1,2", f"tracking.uri=http://me:{LITERAL}@127.0.0.1:{{port}}"),
    "no driver": (f"tracking.uri=mysql+pymysql://me:{LITERAL}@127.0.0.1:{{port}}/x?ssl_key={OTHER}",),
    "another scheme": (f"tracking.uri=ftp://me:{LITERAL}@host",),
    "another type": (f"tracking.uri=[http://me:{LITERAL}@host]",),
    "a token for a number": ("seed=${oc.env:HF_TOKEN}",),
    "a token for a choice": ("model.encoder.cell=${oc.env:HF_TOKEN}",),
    "a token for a class": ("model.encoder._target_=${oc.env:HF_TOKEN}",),
    "a token for a dataset": ("data=hub", "data.dataset=${oc.env:HF_TOKEN}"),
    "an address for a number": ("seed=${oc.env:THE_ADDRESS}",),
    "a key that there is not": (f"+tracking.password={LITERAL}",),
    "a text that cannot be read": (f"tracking.uri=http://me:{LITERAL}@host]",),
    "a slash in a password": (f"tracking.uri=http://me:{LITERAL}/x@host",),
    "two in a sweep": ("-m", f"tracking.uri=http://me:{LITERAL}@a,http://me:{OTHER}@b"),
}


@pytest.mark.parametrize("overrides", FAILURES.values(), ids=FAILURES)
def test_no_secret_is_told_of_a_failure(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...]
) -> None:
    monkeypatch.setenv("THE_ADDRESS", f"http://me:{BY_VARIABLE}@host")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    port = str(free_port())
    options = [text for text in overrides if text == "-m"]
    chosen = [text.replace("{port}", port) for text in overrides if text != "-m"]
    ended = command("train.py", *options, *SHORT, *chosen)
    assert ended.code == 1
    assert "error: " in ended.err
    assert "Traceback" not in ended.err
    tells_nothing(ended, folder)


def test_a_secret_in_a_config_file_is_refused(command: Command, folder: Path) -> None:
    (folder / "theirs" / "experiment").mkdir(parents=True)
    text = f"# @package _global_\ntracking:\n  uri: http://me:{LITERAL}@host\n"
    (folder / "theirs" / "experiment" / "mine.yaml").write_text(text)
    ended = command("train.py", "-cd", "theirs", "experiment=mine")
    assert ended.code == 1
    assert "tracking.uri holds a secret" in ended.err
    assert CANARY not in ended.err
    assert not (folder / "runs").exists()
    (folder / "params.yaml").write_text(json.dumps({"overrides": [f"tracking.uri=http://me:{LITERAL}@host"]}))
    ended = command("compose.py")
    assert ended.code == 1
    assert "tracking.uri holds a secret" in ended.err
    assert CANARY not in ended.err
    assert not (folder / "build").exists()


WORD = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C"), exclude_characters="\"'<>"), min_size=6)


@given(password=WORD, before=st.text(), after=st.text())
@example(password="pa/ss@w?rd#", before="see ", after="")
def test_any_password_of_an_address_is_hidden(password: str, before: str, after: str) -> None:
    text = masked(f"{before} http://me:{password}@host/x {after}")
    assert f"http://{HIDDEN}@host/x" in text


@given(
    password=st.text(
        st.characters(codec="utf-8", exclude_categories=("Z", "C"), exclude_characters="\"',@/${}"), min_size=1
    )
)
def test_what_moves_into_the_environment_comes_back(password: str) -> None:
    environment: dict[str, str] = {}
    (told,) = into_environment([f"tracking.uri=http://me:{password}@host"], environment)
    assert told == "tracking.uri=http://${oc.env:ATTNLAB_SECRET_1}@host"
    assert environment == {"ATTNLAB_SECRET_1": f"me:{password}"}
    assert list(literal_secrets({"uri": told})) == []
    assert into_environment([told], environment) == [told]


def test_what_is_no_secret_stays() -> None:
    for text in (
        "data.path=/home/me@work/data", "tracking.uri=postgresql+psycopg2://user@host/mlflow", "data.dataset=a/b",
        "tracking.uri=sqlite:////home/me@work/x.db", "data.path='C:\\x'", "x=http://me:${oc.env:PASSWORD}@host",
    ):  # fmt: skip
        environment: dict[str, str] = {}
        assert into_environment([text], environment) == [text]
        assert environment == {}
        assert list(literal_secrets({"x": text.partition("=")[2]})) == []
    assert masked("sqlite:////home/me@work/x.db") == "sqlite:////home/me@work/x.db"


def test_a_variable_of_the_environment_is_hidden_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "MLFLOW_TRACKING_PASSWORD", "AWS_SECRET_ACCESS_KEY", "MY_API_KEY", "DB_PASSWD"):
        monkeypatch.setenv(name, f"kanarie {name}")
        assert masked(f"it says kanarie {name}!") == f"it says {HIDDEN}!"
    monkeypatch.setenv("KEYBOARD", "layout-of-the-keys")
    assert masked("layout-of-the-keys") == "layout-of-the-keys"
    assert os.environ["KEYBOARD"]
