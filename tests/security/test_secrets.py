"""Passwords in addresses: refused in written configs, masked wherever an address is shown."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from entry_points import PIPELINES, TINY, Command
from hypothesis import example, given
from hypothesis import strategies as st
from servers import mlflow_server

from attnlab.errors import HIDDEN, masked

CANARY = "kanarie-letter"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(empty_database, folder / "served.db")
    with mlflow_server(
        folder,
        "sqlite:///served.db",
        "--artifacts-destination",
        str(folder / "stored"),
        "--workers",
        "1",
    ) as address:
        yield address
        assert files_with_canary(folder) == []


def files_with_canary(folder: Path) -> list[str]:
    """The files with the canary in their bytes or names."""
    return sorted(
        str(path)
        for path in folder.rglob("*")
        if CANARY in path.name or (path.is_file() and CANARY.encode() in path.read_bytes())
    )


@pytest.mark.slow
@pytest.mark.parametrize("sweep", [(), ("-m", "seed=1,2")], ids=["run", "sweep"])
def test_password_of_an_address_from_the_environment_is_written_nowhere(
    folder: Path, server: str, sweep: tuple[str, ...], warm_python: Path
) -> None:
    address = f"http://me:{CANARY}@{server.removeprefix('http://')}"
    chosen = (
        *TINY,
        "chain=true",
        "++tracking.log_model=false",
        "tracking.uri=${oc.env:THE_ADDRESS}",
    )
    command = [warm_python, PIPELINES / "train.py", *sweep, *chosen]
    ended = subprocess.run(
        command,
        env={**os.environ, "THE_ADDRESS": address},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert CANARY not in ended.stdout + ended.stderr
    assert files_with_canary(folder) == []


def test_unreachable_address_is_shown_without_its_password(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_ADDRESS", f"http://me:{CANARY}@127.0.0.1:9")
    ended = command("train.py", *TINY, "tracking.uri=${oc.env:THE_ADDRESS}")
    assert ended.code == 1
    assert "http://me:***@127.0.0.1:9" in ended.err
    assert CANARY not in ended.out + ended.err
    assert files_with_canary(folder) == []


@pytest.mark.parametrize("place", ["command line", "config file"])
def test_literal_password_is_refused_with_a_pointer_to_mlflows_variables(
    command: Command, folder: Path, place: str
) -> None:
    uri = f"http://me:{CANARY}@host"
    (folder / "mine" / "experiment").mkdir(parents=True)
    (folder / "mine" / "experiment" / "mine.yaml").write_text(
        f"# @package _global_\ntracking:\n  uri: {uri}\n"
    )
    arguments = (
        (f"tracking.uri={uri}",) if place == "command line" else ("-cd", "mine", "experiment=mine")
    )
    ended = command("train.py", *arguments)
    assert ended.code == 1
    assert "tracking.uri" in ended.err
    assert "MLFLOW_TRACKING_PASSWORD" in ended.err
    assert "${oc.env:" in ended.err
    assert CANARY not in ended.out + ended.err
    assert not (folder / "runs" / "points").exists()


PASSWORD = st.text(
    st.characters(codec="utf-8", exclude_categories=("Z", "C"), exclude_characters="/\"'$"),
    min_size=1,
).filter(lambda text: text != HIDDEN)


@given(password=PASSWORD, before=st.text(), after=st.text())
@example(password="p@ss:w?rd#", before="see ", after="")
def test_any_password_of_an_address_is_masked(password: str, before: str, after: str) -> None:
    text = f"{before} http://me:{password}@host/x {after}"
    assert f"http://me:{HIDDEN}@host/x" in masked(text)
    assert masked(masked(text)) == masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://me:${oc.env:PASSWORD}@host",
        "postgresql://${oc.env:USER}:${oc.env:PASSWORD}@host/x", "${oc.env:URI}",
        "http://host:5000/x@y", "postgresql+psycopg2://user@host/mlflow", "/home/me@work/data",
        "sqlite:////home/me@work/x.db", "hf://datasets/a/b@main/c", "https://me:***@host", "C:\\x",
        "12:30",
    ],
)  # fmt: skip
def test_text_without_a_literal_password_stays_unchanged(text: str) -> None:
    assert masked(text) == text
