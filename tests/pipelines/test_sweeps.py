"""Sweeps through the entry point: records, tracked runs, skipped points, errors of failed jobs."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from entry_points import ANY_ATTENTION, TINY, Command, mlflow_client, succeeded, the_sweep
from test_refusals import refused

from attnlab.config.names import readable_name
from attnlab.experiment.composition import compose
from attnlab.runs.sweep_record import SweepFolder

TRACKED = (*ANY_ATTENTION, "tracking.system_metrics=false", "tracking.heat_map_sentences=1")


def runs(folder: Path):
    return mlflow_client(folder).search_runs(["1"])


def children(folder: Path, parent: str):
    return [run for run in runs(folder) if run.data.tags.get("mlflow.parentRunId") == parent]


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_grid_has_a_parent_run_with_a_child_for_each_point_and_trains_only_new_points(
    folder: Path, command: Command
) -> None:
    sweep = ("-m", *TRACKED, "model/attention=dot,none", "seed=1,2")
    ended = succeeded(command("train.py", *sweep))
    assert "sweep: 4 of 4 done, 0 running, 0 failed" in ended.err
    assert "4 of 4 points finished, 4 of them trained now" in ended.err

    first = the_sweep(folder)
    points = [
        (f"model/attention={score}", f"seed={seed}") for score in ("dot", "none") for seed in (1, 2)
    ]
    names = {
        readable_name(compose([*TRACKED, *point]).logged, dict(text.split("=") for text in point))
        for point in points
    }
    assert len(names) == 4
    jobs = first.jobs()
    assert {job.name for job in jobs} == names
    assert all(job.status == "finished" and job.new for job in jobs)
    record = first.read()
    assert (record.name, record.varies, record.points) == (
        "attention × seed",
        ["model/attention", "seed"],
        4,
    )
    for job in jobs:
        output = Path(job.output)
        assert output == first.path / str(job.number)
        assert (output / "metrics.json").is_file()
        assert (output / "report" / "index.html").is_file()

    parent = mlflow_client(folder).get_run(record.run_id)
    assert parent.info.status == "FINISHED"
    assert parent.info.run_name == "sweep · attention × seed"
    # The best point's
    assert {name.partition("/")[0] for name in parent.data.metrics} == {"validation", "test"}
    assert "4 of 4 points finished, 0 failed" in parent.data.tags["mlflow.note.content"]
    found = children(folder, record.run_id)
    assert {run.info.run_name for run in found} == names
    assert {run.info.run_id for run in found} == {job.run_id for job in jobs}
    assert {run.info.status for run in found} == {"FINISHED"}
    assert all("test/bleu" in run.data.metrics for run in found)

    ended_at = {run.info.run_id: run.info.end_time for run in found}
    ended = succeeded(command("train.py", *sweep))
    assert "4 of 4 points finished, 0 of them trained now" in ended.err
    # When it ended is when it was finished, and not when somebody asked for it again.
    assert {
        run.info.run_id: run.info.end_time for run in children(folder, record.run_id)
    } == ended_at
    again = the_sweep(folder).jobs()
    assert not any(job.new for job in again)
    assert [(job.identity, job.run_id) for job in again] == [
        (job.identity, job.run_id) for job in jobs
    ]
    assert len(runs(folder)) == 5

    ended = command("train.py", "-m", *TRACKED, "model/attention=dot,none", "seed=1,2,3")
    assert "6 of 6 points finished, 2 of them trained now" in ended.err
    (larger,) = (
        path.parent for path in first.path.parent.glob("*/sweep.json") if path.parent != first.path
    )
    # Each point has one run, which is now a child of the sweep that took it last, with its name.
    assert len(runs(folder)) == 8
    assert len(children(folder, SweepFolder(larger).read().run_id)) == 6


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_rerun_of_a_sweep_trains_every_point_again_under_the_same_parent_run(
    folder: Path, command: Command
) -> None:
    sweep = ("-m", *TRACKED, "seed=1,2")
    succeeded(command("train.py", *sweep))
    before = the_sweep(folder).read()
    ended = succeeded(command("train.py", *sweep, "rerun=true"))
    assert "2 of 2 points finished, 2 of them trained now" in ended.err
    assert the_sweep(folder).read().run_id == before.run_id
    assert len(children(folder, before.run_id)) == 4
    assert "RUNNING" not in {run.info.status for run in runs(folder)}
    # What was forced once is finished: without the word it is not done again.
    ended = command("train.py", *sweep)
    assert "2 of 2 points finished, 0 of them trained now" in ended.err


DATA_SEED = "data.seed='${oc.decode:${oc.env:ATTNLAB_DATA_SEED}}'"
FILES = (
    "data=hub",
    "data.source=from",
    "data.target=to",
    "data.splits.validation=0.1",
    "data.splits.test=0.1",
)


@pytest.mark.slow
@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("varied", "varies", "sentence"),
    [
        # It diverges, in the experiment's own run.
        (
            [
                DATA_SEED,
                "training.gradient_clip=0",
                "training/optimizer=sgd",
                "training/schedule=constant",
                "training.optimizer.lr=0.001,1e38",
            ],
            "1e+38 optimizer lr",
            "training diverged",
        ),
        # Refused when the number of batches is known: there is an experiment, and no run yet.
        pytest.param(
            [DATA_SEED, "training.keep_best=2", "training.average_checkpoints=1,2"],
            "2 average checkpoints",
            "training.average_checkpoints must be at most",
            marks=pytest.mark.long,
        ),
        # Refused when the data are prepared: there is no experiment yet, and no run.
        pytest.param(
            [*FILES, "data.path=good.json,missing.json"],
            "missing.json",
            "missing.json",
            marks=pytest.mark.long,
        ),
    ],
    ids=["while training", "before it", "before it has data"],
)
def test_failed_job_prints_its_error_and_the_others_finish(
    folder: Path,
    command: Command,
    varied: list[str],
    varies: str,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error names the job's overrides.

    The value of an environment variable among them is written nowhere.
    """
    monkeypatch.setenv("ATTNLAB_DATA_SEED", "918273645")
    rows = [{"from": f"{number} a b", "to": f"{number} c d"} for number in range(60)]
    (folder / "good.json").write_text("\n".join(map(json.dumps, rows)))
    kept = (
        TRACKED
        if "data=hub" not in varied
        else [text for text in TRACKED if not text.startswith("data")]
    )
    sweep = ("-m", *kept, *varied)
    for attempt in (1, 2):
        ended = command("train.py", *sweep)
        assert ended.code == 1
        assert "Traceback" not in ended.err
        assert sentence in ended.err
        record = the_sweep(folder).read()
        jobs = {job.name: job for job in the_sweep(folder).jobs()}
        (fails,) = (name for name in jobs if name.startswith(f"{varies} · "))
        assert f"1 of 2 jobs failed: {fails}" in ended.err
        assert jobs[fails].status == "failed"
        assert sentence in jobs[fails].error
        assert {job.status for name, job in jobs.items() if name != fails} == {"finished"}
        assert mlflow_client(folder).get_run(record.run_id).info.status == "FAILED"
        tracked = [
            run for run in children(folder, record.run_id) if run.info.run_id == jobs[fails].run_id
        ]
        assert len(tracked) == ("diverged" in sentence), attempt
        for failed in tracked:
            assert failed.info.status == "FAILED"
            assert sentence in failed.data.tags["error"]
        assert len(children(folder, record.run_id)) == 1 + len(tracked), attempt
        assert "918273645" not in ended.out + ended.err
    assert [
        path for path in folder.rglob("*") if path.is_file() and b"918273645" in path.read_bytes()
    ] == []


@pytest.mark.slow
def test_failed_sweep_leaves_other_children_of_its_process_alone(command: Command) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    sweep = (
        "-m",
        *ANY_ATTENTION,
        "tracking=none",
        "training.keep_best=2",
        "training.average_checkpoints=1,2",
    )
    assert "1 of 2 jobs failed" in command("train.py", *sweep).err
    assert other.poll() is None
    other.communicate(timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [
        "hydra.sweep.dir=mine",
        pytest.param("hydra.sweep.dir=${paths.runs}/mine", marks=pytest.mark.long),
        pytest.param("hydra.sweep.subdir=point_${hydra.job.num}", marks=pytest.mark.long),
    ],
)
def test_sweep_with_folders_of_ones_own_can_be_compared_also_when_moved(
    folder: Path, command: Command, place: str
) -> None:
    succeeded(command("train.py", "-m", *TINY, "tracking=none", "seed=1,2", place))
    compare = ("compare.py", "sweep=last", "tracking=none", "samples=100", "sentences=1")
    assert "left out" not in succeeded(command(*compare)).err
    shutil.move(folder / "runs", folder / "moved")
    again = succeeded(command(*compare, "paths.runs=moved"))
    assert "left out" not in again.err


OPTUNA = (
    "-m", *ANY_ATTENTION, "tracking=none", "sweep=optuna", "sweep.trials=3",
    "training.optimizer.lr=interval(0.001,0.1)",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
def test_optuna_sweep_with_more_trials_repeats_the_first_ones(
    folder: Path, command: Command
) -> None:
    sweep = (*OPTUNA, "model/attention=dot,general", "training.monitor=token_nll")
    succeeded(command("train.py", *sweep))
    first = the_sweep(folder).jobs()
    assert len({job.name for job in first}) == 3
    succeeded(command("train.py", *(text.replace("trials=3", "trials=4") for text in sweep)))
    again = the_sweep(folder).jobs()
    assert [job.choices for job in again[:3]] == [job.choices for job in first]
    assert [job.new for job in again] == [False, False, False, True]
    best = (the_sweep(folder).path / "optimization_results.yaml").read_text()
    values = [
        json.loads((folder / "runs" / "points" / job.identity / "done.json").read_text())["quality"]
        for job in again
    ]
    assert f"best_value: {min(values)}" in best  # of token_nll less is better


@pytest.mark.slow
def test_optuna_sweep_with_two_objectives_finds_solutions(folder: Path, command: Command) -> None:
    succeeded(command("train.py", *OPTUNA, "sweep.objectives=[quality,training_cpu_seconds]"))
    found = (the_sweep(folder).path / "optimization_results.yaml").read_text()
    assert "solutions" in found


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_search_over_seeds_finds_the_best_mean_and_goes_on_from_its_storage(
    folder: Path, command: Command
) -> None:
    rate = "training.optimizer.lr=interval(0.001,0.1)"
    sweep = (
        "-m", *TRACKED, "sweep=optuna", "sweep.trials=2", "sweep.seeds=2",
        "sweep.storage='sqlite:///search.db'", "training.monitor=token_nll", rate,
    )  # fmt: skip
    ended = succeeded(command("train.py", *sweep))
    led = the_sweep(folder)
    jobs = led.jobs()
    assert led.read().varies == ["training.optimizer.lr", "seed"]
    assert [job.choices["seed"] for job in jobs] == ["1", "2", "1", "2"]
    assert len({job.choices["training.optimizer.lr"] for job in jobs}) == 2

    values = [
        json.loads((folder / "runs" / "points" / job.identity / "done.json").read_text())["quality"]
        for job in jobs
    ]
    best = min(values[:2], values[2:], key=sum)  # of token_nll less is better
    parent = mlflow_client(folder).get_run(led.read().run_id)
    assert parent.data.metrics["search/best_mean"] == pytest.approx(sum(best) / 2)
    assert parent.data.metrics["search/best_spread"] == pytest.approx(statistics.stdev(best))
    assert parent.data.metrics["search/best_seeds"] == 2
    assert "2 trials: 2 complete, 0 pruned, 0 failed" in parent.data.tags["mlflow.note.content"]
    assert f"best over seeds: token_nll {sum(best) / 2:.4g} ± " in ended.out
    assert len(children(folder, led.read().run_id)) == 4

    # All trials are there; without the storage the same points are chosen, and not trained again.
    ended = succeeded(command("train.py", *sweep))
    assert "4 of 4 points finished, 0 of them trained now" in ended.err
    in_memory = [text for text in sweep if not text.startswith("sweep.storage")]
    ended = succeeded(command("train.py", *in_memory))
    assert "4 of 4 points finished, 0 of them trained now" in ended.err


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (["launcher.workers=2"], "launcher.workers must be"),
        (["sweep=optuna", "sweep.trials=0"], "sweep.trials must be"),
        (
            ["sweep.shard=9/8"],
            "sweep.shard must be a part such as 3/8, the third of eight, or null",
        ),
        (["sweep.shard=1/2", "hydra/sweeper=basic"], "sweep.shard must be null with hydra/sweeper"),
        (
            ["sweep=listed", "sweep.points=nowhere.yaml"],
            "sweep.points: nowhere.yaml cannot be read",
        ),
        (["launcher=cloud"], "launcher"),
        (["launcher=slurm"], "there is no Slurm on this machine"),
        (["sweep=optuna", "hydra.sweeper.storage=nowhere"], "sweep.storage must be the address"),
        (
            ["sweep=optuna", "sweep.storage='sqlite:///none/search.db'"],
            "sweep.storage: 'sqlite:///none/search.db' cannot be used: its folder does not exist",
        ),
        (
            ["sweep=optuna", "sweep.storage='postgresql+psycopg2://me:secret@host/name'"],
            "sweep.storage holds a password",
        ),
        (
            ["sweep=optuna", "hydra.sweeper.storage='postgresql+psycopg2://me:secret@host/name'"],
            "hydra.sweeper.storage holds a password",
        ),
        (["sweep=optuna", "sweep.seeds=0"], "sweep.seeds must be"),
        (
            ["sweep=optuna", "sweep.seeds=3"],
            "seed must be left out with sweep.seeds=3, which trains each setting with the seeds 1 "
            "to 3; got seed=1,2",
        ),
        (["sweep=optuna", "sweep.sampler=simulated_annealing"], "sweep.sampler must be"),
        (["sweep=optuna", "hydra/sweeper/sampler=motpe"], "hydra/sweeper/sampler must be one of"),
        (
            [
                "sweep=optuna",
                "sweep.sampler=random",
                "hydra.sweeper.sampler.n_startup_trials=4",
                "training.gradient_clip=1,2",
            ],
            "hydra.sweeper.sampler.n_startup_trials must be null with sweep.sampler=random, got 4",
        ),
        (["sweep=optuna", "sweep.pruner=early"], "sweep.pruner must be"),
        (
            [
                "sweep=optuna",
                "sweep.pruner=median",
                "sweep.objectives=[quality,training_cpu_seconds]",
            ],
            "pruner must be none or null with two objectives",
        ),
        (
            ["sweep=optuna", "training.gradient_clip=interval(2,1)"],
            "training.gradient_clip must be an interval that starts below its end, got "
            "interval(2,1)",
        ),
        (
            ["sweep=optuna", "sweep.sampler=grid", "training.gradient_clip=interval(1,2)"],
            "training.gradient_clip must be a choice(...) or a range(...) for the sampler grid",
        ),
        (
            ["training.gradient_clip=interval(1,2)"],
            "sweep=grid takes values and no interval; choose sweep=optuna for "
            "training.gradient_clip=interval(1,2)",
        ),
        (["hydra/sweeper=optuna", "hydra.sweeper.n_trials=0"], "hydra.sweeper.n_trials must be"),
        (["hydra/sweeper=optuna", "hydra.sweeper.seeds=two"], "hydra.sweeper.seeds must be"),
        (["sweep=optuna", "sweep.wait_for_batch=perhaps"], "sweep.wait_for_batch must be"),
        (
            ["hydra/sweeper=optuna", "hydra.sweeper.wait_for_batch=perhaps"],
            "hydra.sweeper.wait_for_batch must be true or false, got 'perhaps'",
        ),
        (
            [
                "sweep=optuna",
                "sweep.wait_for_batch=false",
                "hydra.launcher._target_=their.Launcher",
            ],
            "sweep.wait_for_batch must be true with hydra/launcher=",
        ),
        (
            ["sweep=optuna", "sweep.study=mine"],
            "sweep.study must be null without sweep.storage, which keeps trials under that name; "
            "got 'mine'",
        ),
        (
            ["launcher=joblib", "launcher.workers=4", "hydra.launcher.n_jobs=3"],
            "launcher.workers has no effect beside hydra.launcher.n_jobs=3, which decides; leave "
            "out one of them, got launcher.workers=4",
        ),
        (
            ["launcher=slurm", "launcher.partition=cpu", "hydra/launcher=joblib"],
            "launcher.partition has no effect beside hydra/launcher=joblib",
        ),
        (
            ["sweep=optuna", "sweep.trials=3", "hydra/sweeper=basic"],
            "sweep.trials has no effect beside hydra/sweeper=basic",
        ),
        (
            ["sweep=optuna", "sweep.sampler=gp", "hydra/sweeper/sampler=tpe"],
            "sweep.sampler has no effect beside hydra/sweeper/sampler=tpe",
        ),
        (["sweep=optuna", "seed=3"], "sweep=optuna needs a setting to choose, such as"),
    ],
)
def test_wrong_sweep_is_refused_before_the_first_job(
    folder: Path, command: Command, wrong: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # the machine may have Slurm's client
    refused(command("train.py", "-m", *TINY, "tracking=none", "seed=1,2", *wrong), sentence)
    assert not (folder / "runs" / "sweeps").exists()
