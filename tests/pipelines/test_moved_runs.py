"""A project whose runs folder was moved, copied or mounted elsewhere, at the entry points."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from entry_points import PIPELINES, TINY, Command, succeeded
from test_refusals import refused

from attnlab.api import load

pytestmark = pytest.mark.slow

TRACKED = (*TINY, "tracking.system_metrics=false", "tracking.heat_map_sentences=0")
SWEEP = ("train.py", "-m", *TRACKED, "seed=1,2")
SMALL = ("samples=100", "sentences=1")
MOUNT = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$0" && exec "$@"'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, empty_database: Path, warm_python: Path) -> Path:
    """A project with a sweep of two points."""
    project = tmp_path_factory.mktemp("made")
    (project / "runs").mkdir()
    shutil.copy(empty_database, project / "runs" / "mlflow.db")
    script, *arguments = SWEEP
    done = subprocess.run(
        [warm_python, str(PIPELINES / script), *arguments],
        cwd=project,
        env={**os.environ, "WARM_PYTHON_BLANK_PICTURES": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture
def project(made: Path, folder: Path, warm_python: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of a test's own, as if it had been made there."""
    own = Path(shutil.copytree(made, folder / "project"))
    deliver = [warm_python, str(PIPELINES / "deliver.py")]
    done = subprocess.run(deliver, cwd=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{own}/runs was copied from {made}/runs" in done.stderr
    for backup in backups(own):
        backup.unlink()
    monkeypatch.chdir(own)
    return own


def moved(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    there = project.rename(project.with_name("한글 이름"))
    monkeypatch.chdir(there)
    return there


def backups(project: Path) -> list[Path]:
    return sorted((project / "runs").glob("mlflow.before_*.db"))


def run_ids(project: Path) -> list[str]:
    """Of the points, in MLflow."""
    query = "SELECT source_run_id FROM logged_models ORDER BY creation_timestamp_ms"
    with closing(sqlite3.connect(project / "runs" / "mlflow.db")) as connection:
        return [run_id for (run_id,) in connection.execute(query)]


def content(project: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}


def test_moved_project_trains_compares_and_loads_as_before(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run_ids(project)
    there = moved(project, monkeypatch)
    trained = succeeded(command("train.py", *TRACKED, "seed=3"))
    assert trained.err.count(f"runs folder: {there}/runs was moved from {project}/runs") == 1
    assert len(backups(there)) == 1

    ids = run_ids(there)
    assert ids[:2] == before
    assert len(ids) == 3
    for run_id in ids:
        load(f"runs:/{run_id}/model")
    compared = succeeded(command("compare.py", "sweep=last", *SMALL))
    assert "MLflow: logged to the sweep's run" in compared.err
    assert (
        succeeded(command("compare.py", f"runs=[{','.join(ids)}]", *SMALL)).out.count(
            "runs/comparisons/"
        )
        == 1
    )
    assert "runs folder:" not in trained.out + compared.err + compared.out

    again = succeeded(command(*SWEEP))
    assert "2 of 2 points finished, 0 of them trained now" in again.err
    assert "runs folder:" not in again.err
    assert run_ids(there) == ids
    assert not project.exists()


def test_finished_run_in_a_moved_project_asks_mlflow_for_nothing(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the run folder says of the database and of the data is right in the new place too."""
    from attnlab.runs.tracking import MlflowTracking

    finished = ("train.py", *TRACKED, "seed=1")
    succeeded(command(*finished))
    there = moved(project, monkeypatch)
    opened: list[Path] = []
    with monkeypatch.context() as watched:
        watched.setattr(
            MlflowTracking, "connection", lambda _, runs_folder: opened.append(runs_folder)
        )
        again = succeeded(command(*finished))
    assert f"runs folder: {there}/runs was moved from" in again.err
    assert opened == []


def test_copied_project_writes_nothing_into_the_original(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(project, project.with_name("copy")))
    before = content(project)
    ids = run_ids(project)
    monkeypatch.chdir(copy)
    again = succeeded(command(*SWEEP))
    assert f"runs folder: {copy}/runs was copied from {project}/runs" in again.err
    assert "2 of 2 points finished, 0 of them trained now" in again.err
    assert run_ids(copy) == ids
    trained = succeeded(command("train.py", *TRACKED, "seed=3"))
    evaluated = succeeded(command("train.py", *TRACKED, "seed=1", "search.size=3"))
    succeeded(command("compare.py", "sweep=last", *SMALL))
    assert "runs folder:" not in trained.err + evaluated.err
    for run_id in run_ids(copy):
        load(f"runs:/{run_id}/model")
    assert content(project) == before

    monkeypatch.chdir(project)
    assert "runs folder:" not in succeeded(command("deliver.py")).err
    assert content(project) == before


def test_database_of_an_unknown_schema_is_refused_by_every_command(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id, *_) = run_ids(project)
    with closing(sqlite3.connect(project / "runs" / "mlflow.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'feedbeef0000'")
    there = moved(project, monkeypatch)
    before = (there / "runs" / "mlflow.db").read_bytes()
    for given in (
        ("train.py", *TRACKED, "seed=3"),
        ("train.py", *TRACKED),
        SWEEP,
        ("deliver.py",),
        ("compare.py", f"runs=[{run_id}]"),
    ):
        ended = command(*given)
        refused(ended, "its schema has the revision feedbeef0000")
        assert "or move the folder back" in ended.err
    assert (there / "runs" / "mlflow.db").read_bytes() == before
    assert backups(there) == []


def test_commands_that_start_together_put_a_moved_database_right_once(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = moved(project, monkeypatch)
    deliver = [sys.executable, str(PIPELINES / "deliver.py")]
    started = [
        subprocess.Popen(deliver, cwd=there, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    said = [process.communicate(timeout=200)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert "".join(said).count("was moved from") == 1
    assert len(backups(there)) == 1


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = ["unshare", "-rm", "sh", "-c", 'mount --bind "$0" "$0"', os.getcwd()]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="this user may not mount")
def test_read_only_project_that_was_moved_can_be_compared_and_loaded(
    project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = moved(project, monkeypatch)
    (run_id, *_) = run_ids(there)
    before = content(there)

    def in_read_only_folder(*arguments: str) -> subprocess.CompletedProcess[str]:
        read_only = ["unshare", "-rm", "sh", "-c", MOUNT, str(there), sys.executable]
        return subprocess.run([*read_only, *arguments], capture_output=True, text=True, check=False)

    compare = str(PIPELINES / "compare.py")
    compared = in_read_only_folder(compare, f"runs=[{run_id}]", f"into={folder}/comparison", *SMALL)
    assert compared.returncode == 0, compared.stderr
    loading = f"import attnlab; attnlab.load('runs:/{run_id}/model')('3 1')"
    loaded = in_read_only_folder("-c", loading)
    assert loaded.returncode == 0, loaded.stderr
    delivered = in_read_only_folder(str(PIPELINES / "deliver.py"))
    assert delivered.returncode == 1
    (sentence,) = delivered.stderr.splitlines()
    assert "cannot be put right: Read-only file system; make the folder writable" in sentence
    assert content(there) == before
