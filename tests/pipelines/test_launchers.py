"""Launchers and sweepers by our groups, by Hydra's own, and mixed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from entry_points import ANY_ATTENTION, TINY, Command, succeeded, the_sweep
from omegaconf import OmegaConf
from test_sweep_processes import QUIET, said, sweep

from attnlab.experiment import sweep_plan
from attnlab.experiment.hydra_config import compose_config
from attnlab.runs import sweep_settings
from attnlab.runs.sweep_settings import JobProcesses, asks_for_gpus, job_processes

RAY = "hydra_plugins.hydra_ray_launcher.ray_launcher.RayLauncher"


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_settings.os, "cpu_count", lambda: 4)


def hydra_node(name: str, *overrides: str) -> dict[str, Any]:
    node: Any = OmegaConf.to_container(compose_config(overrides).hydra[name], resolve=True)
    return node


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], JobProcesses("serial", 1)),
        (["launcher=joblib"], JobProcesses("joblib", 2)),
        (["launcher=joblib", "launcher.workers=3"], JobProcesses("joblib", 3)),
        (["launcher=joblib", "hydra.launcher.n_jobs=3"], JobProcesses("joblib", 3)),
        (["hydra/launcher=joblib"], JobProcesses("joblib", 4)),
        (["hydra/launcher=joblib", "hydra.launcher.n_jobs=3"], JobProcesses("joblib", 3)),
        (["hydra/launcher=joblib", "hydra.launcher.n_jobs=-2"], JobProcesses("joblib", 3)),
        (["launcher=joblib", "hydra/launcher=basic"], JobProcesses("serial", 1)),
        (["launcher=serial", "hydra/launcher=joblib"], JobProcesses("joblib", 4)),
        (["hydra/launcher=submitit_local"], JobProcesses("local", 7)),
        (["launcher=joblib", "hydra/launcher=submitit_local"], JobProcesses("local", 7)),
        (["launcher=slurm", "launcher.workers=5"], JobProcesses("slurm", 5)),
        (["launcher=ray", "launcher.workers=5"], JobProcesses("ray", 5)),
        (["hydra/launcher=submitit_slurm"], JobProcesses("slurm", 256)),
        (["launcher=slurm", "hydra/launcher=submitit_local"], JobProcesses("local", 7)),
    ],
)
def test_launcher_that_hydra_chose_decides_how_jobs_run(
    overrides: list[str], expected: JobProcesses
) -> None:
    assert job_processes(hydra_node("launcher", *overrides), points=7) == expected


@pytest.mark.parametrize("node", [{"_target_": RAY}, {"_target_": "mine.Launcher", "n_jobs": 9}])
def test_unknown_launcher_has_a_worker_for_each_core(node: dict[str, Any]) -> None:
    processes = job_processes(node, points=7)
    assert processes == JobProcesses("other", 4)
    assert processes.on_this_machine
    assert processes.share_terminal


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["launcher=joblib"], True),
        (["launcher=slurm"], False),
        (["launcher=slurm", "launcher.gpus=1"], True),
        (["launcher=slurm", "launcher.gres=gpu:a100:1"], True),
        (["launcher=slurm", "launcher.gres=ssd:1"], False),
        (["launcher=slurm", "+hydra.launcher.gpus_per_task=1"], True),
        (["launcher=slurm", "+hydra.launcher.additional_parameters.gpus=1"], True),
        (["hydra/launcher=submitit_slurm"], False),
        (["hydra/launcher=submitit_slurm", "hydra.launcher.gpus_per_node=1"], True),
    ],
    ids=str,
)
def test_jobs_of_a_cluster_get_gpus_that_they_ask_for(overrides: list[str], expected: bool) -> None:
    assert asks_for_gpus(hydra_node("launcher", *overrides)) == expected


def test_sweep_on_gpus_that_asks_the_cluster_for_none_is_warned_of(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a Slurm, so that it ends before its first job."""
    monkeypatch.setattr(sweep_plan.shutil, "which", lambda name: None)
    warning = "warning: hardware.accelerator is gpu, but the jobs ask the cluster for no GPU; set"
    sweep = ("train.py", "-m", *TINY, "tracking=none", "launcher=slurm", "seed=1,2")
    assert warning in command(*sweep, "hardware=gpu").err
    for others in (["hardware=cpu"], ["hardware=gpu", "launcher.gpus=1"]):
        ended = command(*sweep, *others)
        assert warning not in ended.err
        assert "there is no Slurm on this machine" in ended.err


def test_slurm_launcher_of_the_group_has_its_settings() -> None:
    node = hydra_node("launcher", "launcher=slurm", "launcher.minutes=9", "launcher.partition=cpu")
    expected = {
        "timeout_min": 9,
        "partition": "cpu",
        "max_num_timeout": 10,
        "mem_gb": 8,
        "qos": None,
        "constraint": None,
        "gres": None,
        "setup": [],
    }
    assert {name: node[name] for name in expected} == expected


def test_slurm_launcher_passes_on_what_a_cluster_wants() -> None:
    node = hydra_node(
        "launcher",
        "launcher=slurm",
        "launcher.qos=long",
        "launcher.constraint=a100|h100",
        "launcher.gres=gpu:1",
        "launcher.setup=[module load cuda/12.4,'export NCCL_DEBUG=WARN']",
        "+hydra.launcher.additional_parameters.reservation=course",
    )
    expected = {
        "qos": "long",
        "constraint": "a100|h100",
        "gres": "gpu:1",
        "setup": ["module load cuda/12.4", "export NCCL_DEBUG=WARN"],
        "additional_parameters": {"reservation": "course"},
    }
    assert {name: node[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["sweep=optuna", "sweep.trials=3"], {"n_trials": 3, "n_jobs": 1}),
        (["sweep=optuna", "launcher=joblib"], {"n_trials": 20, "n_jobs": 2}),
        (["sweep=optuna", "hydra/launcher=joblib"], {"n_trials": 20, "n_jobs": 4}),
        (["sweep=optuna", "hydra.sweeper.n_trials=4"], {"n_trials": 4, "n_jobs": 1}),
        (["hydra/sweeper=optuna", "hydra.sweeper.n_trials=4"], {"n_trials": 4}),
        (["sweep=optuna", "hydra/sweeper=basic"], {"max_batch_size": None}),
        (["sweep=grid", "hydra/sweeper=optuna"], {"n_trials": 20}),
    ],
)
def test_sweeper_has_the_settings_of_whatever_chose_it(
    overrides: list[str], expected: dict[str, Any]
) -> None:
    node = hydra_node("sweeper", *overrides)
    assert {name: node[name] for name in expected} == expected


SPELLINGS = {
    "ours": ("launcher=joblib", "launcher.workers=2"),
    "another of hydras over ours": ("launcher=joblib", "hydra/launcher=submitit_local"),
    "hydras": ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "ours, one of hydras over it": ("launcher=joblib", "hydra/launcher=basic"),
}


def first_ones(spellings: dict[str, tuple[str, ...]], count: int) -> list[Any]:
    """Parameters of a test, of which CI takes the first ones, and `make test-all` all."""
    return [
        pytest.param(overrides, id=name, marks=() if place < count else (pytest.mark.long,))
        for place, (name, overrides) in enumerate(spellings.items())
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("spelling", first_ones(SPELLINGS, 2))
def test_sweep_through_a_launcher_finishes_in_each_spelling(
    folder: Path, spelling: tuple[str, ...], warm_python: Path
) -> None:
    # In a process of its own: joblib's workers stay for the next sweep of the same process.
    with sweep(folder, *TINY, *QUIET, "seed=1,2", *spelling, python=warm_python) as process:
        assert process.wait(300) == 0, said(folder)
    jobs = the_sweep(folder).jobs()
    assert [job.status for job in jobs] == ["finished", "finished"]


OPTUNA_SPELLINGS = {
    "ours": ("sweep=optuna", "sweep.trials=3", "sweep.seed=2"),
    "hydras": (
        "hydra/sweeper=optuna",
        "hydra.sweeper.n_trials=3",
        "hydra.sweeper.n_jobs=1",
        "hydra.sweeper.sampler.seed=2",
    ),
    "ours and hydras": ("sweep=optuna", "hydra/sweeper/sampler=random", "hydra.sweeper.n_trials=3"),
}


@pytest.mark.slow
@pytest.mark.parametrize("spelling", first_ones(OPTUNA_SPELLINGS, 1))
def test_optuna_looks_for_the_better_value_in_each_spelling(
    folder: Path, command: Command, spelling: tuple[str, ...]
) -> None:
    # A chrF is better when it is higher; Optuna by itself minimises.
    chosen = ("training.monitor=chrf", "training.optimizer.lr=interval(0.0001,0.2)")
    succeeded(command("train.py", "-m", *ANY_ATTENTION, "tracking=none", *spelling, *chosen))
    led = the_sweep(folder)
    values = [
        json.loads((folder / "runs" / "points" / job.identity / "done.json").read_text())["quality"]
        for job in led.jobs()
    ]
    assert len(values) == 3
    assert len(set(values)) > 1
    found = yaml.safe_load((led.path / "optimization_results.yaml").read_text())
    assert found["best_value"] == max(values)


@pytest.mark.slow
def test_direction_of_the_command_line_stays(folder: Path, command: Command) -> None:
    chosen = (
        "hydra/sweeper=optuna",
        "hydra.sweeper.direction=minimize",
        "hydra.sweeper.n_trials=2",
    )
    rates = ("training.monitor=chrf", "training.optimizer.lr=choice(0.0001,0.2)")
    succeeded(command("train.py", "-m", *ANY_ATTENTION, "tracking=none", *chosen, *rates))
    led = the_sweep(folder)
    values = [
        json.loads((folder / "runs" / "points" / job.identity / "done.json").read_text())["quality"]
        for job in led.jobs()
    ]
    found = yaml.safe_load((led.path / "optimization_results.yaml").read_text())
    assert found["best_value"] == min(values)
