"""What Hydra's users type from memory works as in any other program with Hydra."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from entry_points import ANY_ATTENTION, PIPELINES, TINY, Command, succeeded, the_sweep

# `prepare.py` is the quickest stage: it makes its folder, and Hydra's beside it.
DATA = (*TINY[:3], "tracking=none", "paths.data=data")


def logs(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*.log")]


@pytest.mark.parametrize("choice", ["disabled", "none", "stdout"])
def test_job_logging_of_hydras_own_choices_writes_no_log_file(
    command: Command, folder: Path, choice: str
) -> None:
    ended = succeeded(command("prepare.py", *DATA, f"hydra/job_logging={choice}"))
    assert logs(folder) == []
    if choice == "stdout":
        assert ended.out.count("prepared 160 train") == 2  # printed, and logged


def test_run_folder_environment_and_verbose_logging_can_be_chosen(
    command: Command, folder: Path
) -> None:
    succeeded(
        command(
            "prepare.py",
            *DATA,
            "hydra.run.dir=here",
            "hydra.verbose=true",
            "+hydra.job.env_set.ATTNLAB_SEED=7",
            "seed='${oc.decode:${oc.env:ATTNLAB_SEED}}'",
        )
    )
    assert logs(folder / "here") == ["prepare.log"]
    assert (
        yaml.safe_load((folder / "here" / ".hydra" / "hydra.yaml").read_text())["hydra"]["verbose"]
        is True
    )


def test_rerun_of_a_pickled_job_runs_it_again(command: Command, folder: Path) -> None:
    """The pickles are written by a callback of Hydra's, which `+hydra.callbacks...` adds."""
    callback = "+hydra.callbacks.pickle._target_=hydra.experimental.callbacks.PickleJobInfoCallback"
    succeeded(command("prepare.py", *DATA, "hydra.run.dir=here", callback))
    shutil.rmtree(folder / "data")
    succeeded(command("prepare.py", "--experimental-rerun", "here/.hydra/config.pickle"))
    assert (folder / "data" / "data.json").is_file()


def test_cfg_job_resolved_shows_values_in_the_place_of_references(
    command: Command, folder: Path
) -> None:
    ended = succeeded(command("train.py", "--cfg", "job", "--resolve", "hardware.bucket_pool=17"))
    assert yaml.safe_load(ended.out)["training"]["batching"]["pool"] == 17
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("model/attention=", "model/attention=dot"),
        ("training.max_s", "training.max_steps="),
        ("hydra/launcher=", "hydra/launcher=joblib"),
    ],
)
def test_tab_completion_offers_choices_and_settings(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, typed: str, offered: str
) -> None:
    line = f"python {PIPELINES / 'train.py'} {typed}"
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_POINT", str(len(line)))
    ended = succeeded(command("train.py", "-sc", "query=bash"))
    assert offered in ended.out.split()


def test_multirun_with_glob_runs_each_choice_in_the_chosen_folder(
    command: Command, folder: Path
) -> None:
    succeeded(command("prepare.py", "-m", *DATA, "padding=glob(un*)", "hydra.sweep.dir=sweep"))
    chosen = [
        (folder / "sweep" / number / ".hydra" / "overrides.yaml").read_text() for number in "01"
    ]
    assert [text.splitlines()[-1] for text in chosen] == [
        "- padding=unmasked",
        "- padding=unmasked_read",
    ]


LOG_JOB_RETURN = (
    "+hydra.callbacks.log._target_=hydra.experimental.callbacks.LogJobReturnCallback",
    "hydra/job_logging=stdout",
)  # fmt: skip


def test_finished_job_is_shown_to_other_callbacks(command: Command, folder: Path) -> None:
    ended = succeeded(command("prepare.py", *DATA, *LOG_JOB_RETURN))
    assert "Succeeded with return value" in ended.out


def test_failed_job_is_shown_to_other_callbacks_and_prints_its_sentence_once(
    command: Command, folder: Path
) -> None:
    ended = command(
        "prepare.py", "data=hub", "++data.path=nowhere.json", "tracking=none", *LOG_JOB_RETURN
    )
    assert ended.code == 1
    assert "ExperimentError: data.path: there is no" in ended.out
    assert len(ended.err.splitlines()) == 1
    assert ended.err.startswith("error: data.path: there is no")


def test_job_with_a_folder_of_its_own_keeps_experiments_where_the_command_was_given(
    command: Command, folder: Path
) -> None:
    chosen = (*TINY, "tracking=none", "hydra.job.chdir=true")
    succeeded(command("train.py", *chosen, "hydra.run.dir=elsewhere"))
    assert len(list((folder / "runs" / "points").glob("*/model/weights.safetensors"))) == 1
    assert (folder / "elsewhere" / "metrics.json").is_file()
    assert not (folder / "elsewhere" / "runs").exists()
    again = command("train.py", "-m", *chosen, "hydra.sweep.dir=swept", "seed=1")
    assert "is finished already" in again.err
    assert not list((folder / "swept").rglob("points"))


@pytest.mark.slow
def test_sweep_with_hydras_own_joblib_and_optuna_settings_is_led(
    command: Command, folder: Path
) -> None:
    chosen = (
        "hydra/launcher=joblib", "hydra.launcher.n_jobs=1", "hydra/sweeper=optuna",
        "hydra.sweeper.n_trials=2", "hydra.sweeper.n_jobs=1", "hydra.sweeper.sampler.seed=3",
        "training.gradient_clip=interval(0.5,2)",
    )  # fmt: skip
    succeeded(command("train.py", "-m", *ANY_ATTENTION, "tracking=none", *chosen))
    assert [job.status for job in the_sweep(folder).jobs()] == ["finished", "finished"]
    assert the_sweep(folder).read().points == 2


@pytest.mark.slow
def test_grid_sampler_of_optuna_runs_every_point(command: Command, folder: Path) -> None:
    chosen = ("tracking=none", "sweep=optuna", "hydra/sweeper/sampler=grid", "seed=choice(1,2)")
    succeeded(command("train.py", "-m", *ANY_ATTENTION, *chosen))
    assert {job.choices["seed"] for job in the_sweep(folder).jobs()} == {"1", "2"}
