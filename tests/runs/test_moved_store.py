"""MLflow's database of a runs folder that was moved or copied.

The tests check what is corrected in it, and what is not.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from filelock import FileLock
from mlflow import MlflowClient
from mlflow.store import db_migrations

from attnlab.errors import ExperimentError
from attnlab.runs.moved_store import KNOWN_REVISIONS, follow_moved_folder

ELSEWHERE = {
    "another server": "s3://bucket/runs/mlflow-artifacts",
    "longer name": "file:///old/runs2/mlflow-artifacts",
    "name in the middle": "/mnt/old/runs/mlflow-artifacts",
    "registered model": "models:/m-0123",
}


def address_of(runs: Path) -> str:
    return f"sqlite:///{runs}/mlflow.db"


def asked(database: Path, query: str, *values: str) -> list[str]:
    with closing(sqlite3.connect(database)) as connection, connection:
        return [row[0] for row in connection.execute(query, values)]


def place_of(runs: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((runs / "place.json").read_text())
    return found


def backups(runs: Path) -> list[Path]:
    return sorted(runs.glob("mlflow.before_*.db"))


@pytest.fixture
def tracked(runs, tracking):
    """A runs folder with one run that has an artifact."""
    connection = tracking().connection(runs)
    client = connection.open()
    run = client.create_run(connection.experiment_id)
    client.log_text(run.info.run_id, "text", "note.txt")
    return runs


def moved(runs: Path, name: str) -> Path:
    """The folder after `mv`."""
    there = runs.parent / name / "runs"
    there.parent.mkdir(parents=True)
    return runs.rename(there)


def test_known_revision_is_that_of_the_installed_mlflow():
    """A failure means that a newer MLflow has changed its tables.

    Look for columns with locations in them, then add its revision.
    """
    assert ScriptDirectory(str(Path(db_migrations.__file__).parent)).get_heads() == [
        KNOWN_REVISIONS[-1]
    ]


@pytest.mark.parametrize("name", ["plain", "한글 이름", "100% #1", "a/runs"])
def test_moved_folder_has_its_artifacts_again(tracked, name, capsys):
    runs = moved(tracked, name)
    follow_moved_folder(runs, address_of(runs))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"runs folder: {runs} was moved from {tracked}; 2 locations in mlflow.db were put right"
    )
    assert str(*backups(runs)) in line
    client = MlflowClient(address_of(runs))
    experiment = client.get_experiment_by_name("attnlab")
    assert experiment.artifact_location == (runs / "mlflow-artifacts").as_uri()
    (run,) = client.search_runs([experiment.experiment_id])
    assert Path(client.download_artifacts(run.info.run_id, "note.txt")).read_text() == "text"
    follow_moved_folder(runs, address_of(runs))
    assert capsys.readouterr().err == ""
    assert len(backups(runs)) == 1


def test_folder_that_was_moved_back_is_followed_again(tracked, capsys):
    first = place_of(tracked)
    there = moved(tracked, "there")
    follow_moved_folder(there, address_of(there))
    there.rename(tracked)
    capsys.readouterr()
    follow_moved_folder(tracked, address_of(tracked))
    assert f"{tracked} was moved from {there}" in capsys.readouterr().err
    assert place_of(tracked) == {**first, "moved_from": [str(there)]}
    assert str(tracked) in asked(tracked / "mlflow.db", "SELECT artifact_uri FROM runs")[0]


def test_folder_that_was_moved_into_itself_is_followed_once(tracked, capsys):
    """Its new place lies in the old one, of which it must not be taken for a part."""
    aside = tracked.rename(tracked.with_name("aside"))
    tracked.mkdir()
    runs = aside.rename(tracked / "old")
    for _ in range(2):
        follow_moved_folder(runs, address_of(runs))
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert asked(
        runs / "mlflow.db", "SELECT artifact_location FROM experiments WHERE name = 'attnlab'"
    ) == [(runs / "mlflow-artifacts").as_uri()]


def test_copy_gets_an_id_of_its_own_and_the_original_stays(tracked, capsys):
    copy = Path(shutil.copytree(tracked, tracked.parent / "copy"))
    before = {path: path.read_bytes() for path in tracked.rglob("*") if path.is_file()}
    follow_moved_folder(copy, address_of(copy))
    assert f"{copy} was copied from {tracked}" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tracked.rglob("*") if path.is_file()} == before
    assert place_of(copy)["id"] != place_of(tracked)["id"]
    follow_moved_folder(tracked, address_of(tracked))
    assert capsys.readouterr().err == ""


def test_every_column_with_a_location_is_put_right_and_others_stay(runs, tracking, capsys):
    client = tracking().connection(runs).open()
    run = client.create_run("2").info.run_id
    model = client.create_logged_model("2", "model", run)
    client.create_registered_model("registered")
    client.create_model_version("registered", model.artifact_location, run)
    database = runs / "mlflow.db"
    history = json.dumps([{"artifact_path": f"{runs}/mlflow-artifacts/x", "flavors": {}}])
    tagged = "INSERT INTO tags (key, value, run_uuid) VALUES (?, ?, ?)"
    asked(database, tagged, "mlflow.log-model.history", history, run)
    asked(database, tagged, "note", f"{runs}/a", run)
    source = json.dumps({"uri": f"{runs}/data/1"})
    asked(
        database,
        "INSERT INTO datasets (dataset_uuid, experiment_id, name, digest, dataset_source_type, "
        "dataset_source) VALUES ('u', 1, 'n', 'd', 'local', ?)",
        source,
    )
    asked(
        database,
        "INSERT INTO trace_info (request_id, experiment_id, timestamp_ms, status) "
        "VALUES ('t', 1, 1, 'OK')",
    )
    trace = (runs / "mlflow-artifacts" / "traces" / "t").as_uri()
    asked(
        database,
        "INSERT INTO trace_tags (key, value, request_id) "
        "VALUES ('mlflow.artifactLocation', ?, 't')",
        trace,
    )
    asked(
        database, "UPDATE workspaces SET default_artifact_root = ?", str(runs / "mlflow-artifacts")
    )
    for name, location in ELSEWHERE.items():
        client.create_experiment(name, location)

    there = moved(runs, "새 곳")
    follow_moved_folder(there, address_of(there))
    database, new = there / "mlflow.db", (there / "mlflow-artifacts").as_uri()
    capsys.readouterr()
    assert asked(database, "SELECT artifact_uri FROM runs") == [f"{new}/{run}/artifacts"]
    of_the_model = [f"{new}/models/{model.model_id}/artifacts"]
    assert asked(database, "SELECT artifact_location FROM logged_models") == of_the_model
    assert asked(database, "SELECT source FROM model_versions") == of_the_model
    assert asked(database, "SELECT storage_location FROM model_versions") == of_the_model
    assert asked(database, "SELECT value FROM trace_tags") == [f"{new}/traces/t"]
    assert asked(database, "SELECT default_artifact_root FROM workspaces") == [
        str(there / "mlflow-artifacts")
    ]
    (found,) = asked(database, "SELECT dataset_source FROM datasets")
    assert json.loads(found) == {"uri": f"{there}/data/1"}
    (found,) = asked(database, "SELECT value FROM tags WHERE key = 'mlflow.log-model.history'")
    assert json.loads(found)[0]["artifact_path"] == f"{there}/mlflow-artifacts/x"
    assert asked(database, "SELECT value FROM tags WHERE key = 'note'") == [f"{runs}/a"]
    for name, location in ELSEWHERE.items():
        assert asked(
            database, "SELECT artifact_location FROM experiments WHERE name = ?", name
        ) == [location]


def test_folder_without_a_place_is_followed_from_the_locations_in_its_database(tracked, capsys):
    (tracked / "place.json").unlink()
    runs = moved(tracked, "there")
    follow_moved_folder(runs, address_of(runs))
    assert f"{runs} was moved from {tracked}" in capsys.readouterr().err
    assert place_of(runs)["moved_from"] == [str(tracked)]


def test_artifacts_that_are_only_in_the_former_place_are_not_lost(tracked, capsys):
    """As MLflow wrote them before a moved folder was followed."""
    (tracked / "place.json").unlink()
    runs = moved(tracked, "there")
    client = MlflowClient(address_of(runs))
    late = client.create_run("2").info.run_id
    client.log_text(late, "late", "note.txt")
    assert tracked.exists()
    follow_moved_folder(runs, address_of(runs))
    assert "1 still point there, for their files are only there" in capsys.readouterr().err
    assert Path(client.download_artifacts(late, "note.txt")).read_text() == "late"
    follow_moved_folder(runs, address_of(runs))
    assert capsys.readouterr().err == ""


def test_folder_under_a_second_name_keeps_its_locations(tracked, capsys):
    """A link, or the same folder mounted twice: the locations are good as they are."""
    there = moved(tracked, "there")
    tracked.symlink_to(there)
    before = (there / "mlflow.db").read_bytes()
    for name in (tracked, there):
        follow_moved_folder(name, address_of(name))
    assert capsys.readouterr().err == ""
    assert (there / "mlflow.db").read_bytes() == before
    tracked.unlink()
    follow_moved_folder(there, address_of(there))
    assert f"{there} was moved from {tracked}" in capsys.readouterr().err


@pytest.mark.parametrize("lock", ["points/a/lock", "points/a/evaluations/b/lock", "sweeps/a/lock"])
def test_moved_folder_that_a_process_works_in_is_refused(tracked, lock):
    runs = moved(tracked, "there")
    (runs / lock).parent.mkdir(parents=True)
    before = (runs / "mlflow.db").read_bytes()
    with (
        FileLock(runs / lock),
        pytest.raises(
            ExperimentError, match=f"was {tracked} before, and a process still works on {lock[:-5]}"
        ),
    ):
        follow_moved_folder(runs, address_of(runs))
    assert (runs / "mlflow.db").read_bytes() == before
    follow_moved_folder(runs, address_of(runs))


def test_unknown_schema_is_refused_and_nothing_is_written(tracked):
    asked(tracked / "mlflow.db", "UPDATE alembic_version SET version_num = 'feedbeef0000'")
    runs = moved(tracked, "there")
    before = {
        path: path.read_bytes()
        for path in runs.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }
    with pytest.raises(
        ExperimentError, match=r"still point to .*revision feedbeef0000, this attnlab knows dc11"
    ) as no:
        follow_moved_folder(runs, address_of(runs))
    assert "\n" not in str(no.value)
    assert {
        path: path.read_bytes()
        for path in runs.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    } == before


def test_failure_in_the_middle_leaves_the_database_as_it_was(tracked, monkeypatch, capsys):
    runs = moved(tracked, "there")
    before = asked(runs / "mlflow.db", "SELECT artifact_location FROM experiments")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("attnlab.runs.moved_store._moved_json", full)
        asked(
            runs / "mlflow.db",
            "INSERT INTO datasets (dataset_uuid, experiment_id, name, digest, "
            "dataset_source_type, dataset_source) VALUES ('u', 1, 'n', 'd', 'local', '{}')",
        )
        with pytest.raises(ExperimentError, match="cannot be put right: No space left on device"):
            follow_moved_folder(runs, address_of(runs))
    assert asked(runs / "mlflow.db", "SELECT artifact_location FROM experiments") == before
    assert place_of(runs)["folder"] == str(tracked)
    follow_moved_folder(runs, address_of(runs))
    assert "was moved from" in capsys.readouterr().err


def test_backup_holds_what_is_in_the_write_ahead_log(tracked):
    runs = moved(tracked, "there")
    with closing(sqlite3.connect(runs / "mlflow.db")) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        with writer:
            writer.execute(
                "UPDATE experiments SET lifecycle_stage = 'deleted' WHERE name = 'template'"
            )
        follow_moved_folder(runs, address_of(runs))
        (backup,) = backups(runs)
        query = "SELECT lifecycle_stage FROM experiments WHERE name = 'template'"
        assert asked(backup, query) == asked(runs / "mlflow.db", query) == ["deleted"]
        query = "SELECT artifact_location FROM experiments WHERE name = 'attnlab'"
        assert asked(backup, query) == [(tracked / "mlflow-artifacts").as_uri()]


def test_database_beside_the_runs_folder_is_put_right_as_well(tmp_path, tracking, capsys):
    """`tracking.uri=sqlite:///own.db`, moved with the project and after the other database."""
    runs, settings = tmp_path / "project" / "runs", tracking(uri="sqlite:///own.db")
    runs.mkdir(parents=True)
    settings.connection(runs).open()
    tracking().connection(runs).open()
    assert place_of(runs)["folder"] == str(runs)
    there = (tmp_path / "project").rename(tmp_path / "there") / "runs"
    tracking().connection(there).open()
    assert "mlflow.db were put right" in capsys.readouterr().err
    settings.connection(there).open()
    assert "own.db were put right" in capsys.readouterr().err
    query = "SELECT artifact_location FROM experiments WHERE name = 'attnlab'"
    assert asked(there.parent / "own.db", query) == [(there / "mlflow-artifacts").as_uri()]


def test_copy_of_the_runs_folder_alone_may_not_write_to_the_experiment_of_the_original(
    tmp_path, tracking
):
    """Their common database belongs to the original, and its artifacts lie there."""
    runs, shared = tmp_path / "runs", f"sqlite:///{tmp_path}/shared.db"
    runs.mkdir()
    tracking(uri=shared).connection(runs).open()
    copy = Path(shutil.copytree(runs, tmp_path / "copy"))
    before = (tmp_path / "shared.db").read_bytes()
    with pytest.raises(
        ExperimentError,
        match=r"tracking.experiment: 'attnlab' .* stores its artifacts in .*; choose",
    ):
        tracking(uri=shared).connection(copy).open()
    assert (tmp_path / "shared.db").read_bytes() == before
    tracking(uri=shared, experiment="own").connection(copy).open()
    tracking(uri=shared).connection(runs).open()


def test_folder_without_a_place_leaves_another_folder_in_its_database_alone(
    tracked, tracking, capsys
):
    """Two runs folders may be tracked in one database; neither is where the other one was."""
    other = tracked.parent / "other"
    other.mkdir()
    connection = tracking(uri=address_of(tracked), experiment="other").connection(other)
    client = connection.open()
    client.log_text(client.create_run(connection.experiment_id).info.run_id, "text", "note.txt")
    for runs in (tracked, other):
        (runs / "place.json").unlink()
    before = (tracked / "mlflow.db").read_bytes()
    for runs in (tracked, other):
        follow_moved_folder(runs, address_of(tracked))
        assert place_of(runs)["moved_from"] == place_of(runs)["copied_from"] == []
    assert capsys.readouterr().err == ""
    assert (tracked / "mlflow.db").read_bytes() == before
