"""From a sweep to a champion that translates."""

from __future__ import annotations

import datetime
import json
import re
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
    for part in ("**Test:** bleu ", "**Data:** copy · train 160", "python pipelines/train.py", "training.max_steps=40"):
        assert part in champion.description

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
