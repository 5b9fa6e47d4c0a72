"""From a sweep to a champion that translates, and from a run back to the commands that made it."""

from __future__ import annotations

import datetime
import json
import re
import shlex
from pathlib import Path

import mlflow.pyfunc
import pytest
from babel.dates import format_date
from entry_points import TINY, Command, mlflow_client, succeeded, the_sweep
from test_refusals import refused

from attnlab.stages.compose import compose

TRACKED = (*TINY, "tracking.system_metrics=false", "tracking.heat_map_sentences=0")


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_register_makes_the_best_run_of_a_sweep_the_champion(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = ("-m", *TRACKED, "training.max_steps=1,40", "training.monitor=token_nll")
    succeeded(command("train.py", *sweep))
    ended = succeeded(command("register.py", "sweep=last"))
    assert "best by validation: max steps 40" in ended.out
    client = mlflow_client(folder)
    jobs = {job.name: job for job in the_sweep(folder).jobs()}
    champion = client.get_model_version_by_alias("attnlab", "champion")
    assert champion.run_id == jobs["max steps 40"].run_id

    again = command("register.py", "sweep=last")
    assert "was registered before as version 1" in again.out
    other = command("register.py", f"run={jobs['max steps 1'].run_id}")
    assert "registered as version 2" in other.out
    assert client.get_model_version_by_alias("attnlab", "champion").run_id == jobs["max steps 1"].run_id

    refused(command("register.py", "run=0123"), "has no run 0123")

    database = f"sqlite:///{folder}/runs/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", database)
    mlflow.set_tracking_uri(database)
    (answer,) = mlflow.pyfunc.load_model("models:/attnlab@champion").predict(["a b c"])
    assert isinstance(answer["text"], str)


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_points_that_differ_in_the_search_alone_share_the_model_that_is_registered(
    folder: Path, command: Command
) -> None:
    searches = tuple(choice for choice in TRACKED if not choice.startswith("search."))
    succeeded(command("train.py", "-m", *searches, "search.max_length=8", "search.size=1,2"))
    succeeded(command("register.py", "sweep=last"))
    jobs = the_sweep(folder).jobs()
    assert [job.new for job in jobs] == [True, False]
    (identity,) = {job.identity for job in jobs}
    trained = json.loads((folder / "runs" / "points" / str(identity) / "run" / "mlflow.json").read_text())["run_id"]
    client = mlflow_client(folder)
    assert client.get_model_version_by_alias("attnlab", "champion").run_id == trained
    of_points = [client.get_run(job.run_id) for job in jobs]
    named = {run.info.run_name: run.data.params["search.size"] for run in of_points}
    assert named == {"search size 1": "1", "search size 2": "2"}


def test_example_of_register_is_a_date_of_the_demo(folder: Path, command: Command) -> None:
    corpus = compose({})["data"]
    (written,) = re.findall(r'predict\(\["(.*)"\]\)', command("register.py", "--help").out)
    formats = [
        format_date(datetime.date(2010, 1, 13), each, locale)
        for locale in corpus["source_locales"]
        for each in corpus["formats"]
    ]
    assert written in formats


@pytest.mark.parametrize(
    ("script", "wrong", "sentence"),
    [
        ("way_back.py", [], "run must be"),
        ("way_back.py", ["run=none"], "there is no database"),
        ("register.py", [], "exactly one of sweep and run"),
        ("register.py", ["sweep=last", "run=abc"], "exactly one of sweep and run"),
        ("register.py", ["sweep=last"], "there is no sweep"),
        ("register.py", ["run=0123"], "there is no database"),
        ("register.py", ["run=0123", "alias=v1"], "alias"),
        ("register.py", ["run=0123", "name=a/b"], "name"),
        ("register.py", ["run=0123", "tracking=none"], "tracking must be one of mlflow; got 'none'"),
        ("register.py", ["run=0123", "colour=red"], "colour"),
        ("register.py", ["--best"], "got '--best'"),
    ],
)
def test_mistakes_are_sentences(folder: Path, command: Command, script: str, wrong: list[str], sentence: str) -> None:
    refused(command(script, *wrong), sentence)


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_way_back_gives_the_same_metrics(folder: Path, command: Command) -> None:
    succeeded(command("train.py", *TRACKED, "seed=7", "model/attention=bahdanau"))
    (run,) = mlflow_client(folder).search_runs(["1"])
    ended = succeeded(command("way_back.py", f"run={run.info.run_id}"))
    lines = ended.out.splitlines()
    assert any(line.startswith("# chosen on the command line:") and "seed=7" in line for line in lines)
    assert any(run.data.tags["data_hash"] in line for line in lines)
    (back,) = (shlex.split(line) for line in lines if line.startswith("python "))
    first = next((folder / "runs" / "plain").rglob("metrics.json"))
    metrics = json.loads(first.read_text())

    assert Path(back[1]).name == "train.py"
    succeeded(command("train.py", *back[2:]))
    newest = max((folder / "runs" / "plain").rglob("*/metrics.json"), key=lambda path: path.stat().st_mtime)
    assert newest != first
    assert json.loads(newest.read_text()) == metrics


def test_way_back_of_a_foreign_run_is_refused(folder: Path, command: Command) -> None:
    artifacts = (folder / "artifacts").as_uri()
    (folder / "runs").mkdir()
    client = mlflow_client(folder)
    run = client.create_run(client.create_experiment("attnlab", artifact_location=artifacts)).info.run_id
    for config in ("[1, 2]", "paths: 3", "paths: {runs: x}", "a: &a [*a]", "a: !!int ''", "a: ["):
        client.log_text(run, config, "config.yaml")
        refused(command("way_back.py", f"run={run}"), f"run: the config of {run} is not one of this program's")
