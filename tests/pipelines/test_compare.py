"""compare.py at its entry point: what it answers, what it refuses, and what it leaves behind."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from entry_points import Command, succeeded
from test_refusals import left, refused

from made_sweep import IDENTITY, write_sweep

SMALL = ("samples=100", "sentences=1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("made") / "runs"
    write_sweep(runs)
    return runs


@pytest.fixture
def sweep(folder: Path, made: Path) -> Path:
    shutil.copytree(made, folder / "runs")
    return folder / "runs" / "sweeps" / IDENTITY


def test_compare_of_the_last_sweep_writes_page_and_tables(command: Command, sweep: Path) -> None:
    ended = succeeded(command("compare.py", "sweep=last", *SMALL))
    assert f"page: {sweep}/comparison/index.html\n" in ended.out
    assert ended.out.startswith("bahdanau is better than dot by ")
    for expected in ("bahdanau", "no attention", "BLEU ↑", "Systems that share a letter"):
        assert expected in ended.out
    assert "left out: general · seed 1: failed: the <disk> is full" in ended.err
    assert "MLflow: not logged" in ended.err
    assert not (sweep.parents[1] / "mlflow.db").exists()
    first = (sweep / "comparison" / "index.html").read_bytes()
    succeeded(command("compare.py", f"sweep={IDENTITY[:3]}", "into=elsewhere", *SMALL))
    assert Path("elsewhere", "index.html").read_bytes() == first


REFUSALS = {
    "none": (
        (),
        "give exactly one of sweep, runs, filter, builds, such as sweep=last; got none of them",
    ),
    "two": (("sweep=last", "runs=[a]"), "got sweep and runs"),
    "metric of some": (("sweep=last", "metric=aer"), "metric must be one that all runs have"),
    "samples": (
        ("sweep=last", "samples=3"),
        "samples must be a whole number between 100 and 100000, got 3",
    ),
    "confidence": (
        ("sweep=last", "confidence=1"),
        "confidence must be a number of at least 0.5 and below 1, got 1",
    ),
    "key": (("sweep=last", "sample=3"), "sample is not a setting; did you mean samples?"),
    "tracking key": (
        ("sweep=last", "tracking.url=x"),
        "tracking.url is not a setting; did you mean tracking.uri?",
    ),
    "tracking": (
        ("sweep=last", "tracking=wandb"),
        "tracking must be one of mlflow, none; got 'wandb'",
    ),
    "paths": (("sweep=last", "paths.data=x"), "paths.data is not a setting; paths has: runs"),
    "no value": (("sweep",), "takes settings written key=value, got 'sweep'"),
    "option": (("-m", "sweep=last"), "this command takes settings written key=value, got '-m'"),
    "runs without a tracker": (
        ("runs=[1e5]", "tracking=none"),
        "tracking must be mlflow where runs or filter is given",
    ),
    "runs without a database": (("runs=[1e5]",), "tracking.uri: there is no database"),
    "no list": (
        ("runs=abc",),
        "runs must be a list of text that is not empty with at least 1 entry or null, got 'abc'",
    ),
    "into": (("sweep=last", "into=runs"), "holds something else, which would be lost"),
    "nothing built": (
        ("builds=[runs]",),
        "builds: there is no runs/resolved.yaml; run the compose stage first",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_compare_with_a_wrong_setting_is_refused(
    command: Command, sweep: Path, folder: Path, case: str
) -> None:
    arguments, said = REFUSALS[case]
    before = left(folder)
    refused(command("compare.py", *arguments), said)
    assert left(folder) == before


def test_compare_of_a_single_point_writes_a_page(command: Command, folder: Path) -> None:
    write_sweep(folder / "runs", {"dot": 0.5}, (1,), failed=False)
    ended = succeeded(command("compare.py", "sweep=last", *SMALL))
    assert "share a letter" not in ended.out
    page = (folder / "runs" / "sweeps" / IDENTITY / "comparison" / "index.html").read_text(
        encoding="utf-8"
    )
    assert "nothing to compare it with" in page


def test_compare_of_one_seed_each_prints_no_verdict_and_how_to_add_seeds(
    command: Command, folder: Path
) -> None:
    write_sweep(folder / "runs", {"dot": 0.5, "general": 0.9}, (1,), failed=False)
    ended = succeeded(command("compare.py", "sweep=last", *SMALL))
    assert ended.out.startswith("Nothing is known about which of the 2 systems is better")
    assert (
        "add seeds: python pipelines/train.py -m model/attention=dot,general seed=1,2,3,4,5\n"
        in ended.out
    )
    assert "group" not in ended.out


@pytest.mark.usefixtures("database")
def test_compare_of_mlflow_runs_is_logged_to_their_sweep(command: Command, folder: Path) -> None:
    """The sweep's run gets the comparison, whichever way its children were asked for."""
    import dataclasses

    from mlflow import MlflowClient

    from attnlab.runs.run_folder import RunRecord
    from attnlab.runs.tracking import MlflowTracking

    sweep = write_sweep(folder / "runs", {"dot": 0.8, "none": 0.3}, failed=False)
    tracking = MlflowTracking(None, "attnlab", None, False, 0, False, "refuse")
    runs = folder / "runs"
    record = RunRecord(
        {}, identity="x", data_digest="", tags={"sweep": "x", "varies": "seed"}, name="sweep"
    )
    with tracking.for_sweep().start(runs, sweep.path, record) as parent:
        sweep.write(dataclasses.replace(sweep.read(), run_id=parent.run_id))
    ids = []
    for job in sweep.jobs():
        score = {"dot": {"_target_": "attnlab.model.attention.dot.DotScore"}, "none": None}
        chosen = job.choices["model/attention"]
        config = {"model": {"attention": score[chosen]}, "seed": int(job.choices["seed"])}
        tags = {"sweep": IDENTITY, "mlflow.parentRunId": str(parent.run_id)}
        point = runs / "points" / str(job.identity)
        with tracking.start(
            runs, point, RunRecord(config, "y", "", tags=tags, name=job.name)
        ) as run:
            run.log_artifact(Path(job.output) / "evaluation")
        sweep.write_job(dataclasses.replace(job, run_id=run.run_id))
        ids.append(str(run.run_id))
    client = MlflowClient(f"sqlite:///{runs}/mlflow.db")

    def logged() -> list[str]:
        return [each.path for each in client.list_artifacts(str(parent.run_id), "comparison")]

    ended = succeeded(command("compare.py", "sweep=last", *SMALL))
    assert f"MLflow: logged to the sweep's run {parent.run_id}" in ended.err
    assert "comparison/index.html" in logged()
    verdicts = {client.get_run(run_id).data.tags["verdict"] for run_id in ids}
    assert len(verdicts) == 2
    assert "best, certain (2 seeds)" in verdicts

    by_ids = succeeded(command("compare.py", f"runs=[{','.join(ids)}]", *SMALL))
    found = re.search(r"page: (\S*/runs/comparisons/[0-9a-f]{16}/index\.html)", by_ids.out)
    assert found
    # Some of the runs are another comparison than the sweep's own, and do not take its place.
    others = [each.path for each in client.list_artifacts(str(parent.run_id), "comparisons")]
    assert others == [f"comparisons/{found[1].split('/')[-2]}"]
    by_filter = succeeded(
        command(
            "compare.py", f"filter=tags.sweep = '{IDENTITY}' and params.attention != 'none'", *SMALL
        )
    )
    assert "no attention" not in by_filter.out
    nothing = command("compare.py", "filter=tags.sweep = 'z'")
    refused(nothing, "filter: no run with an evaluation was found by \"tags.sweep = 'z'\"")
