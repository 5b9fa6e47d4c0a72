"""Points that no sweep can hold are refused before the first of them starts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from entry_points import TINY, Command

from attnlab.errors import ExperimentError
from attnlab.experiment.composed import CONF, ConfigSource

REFUSED = "hardware.strategy ddp starts its other processes with the command of the first one"
DDP = ("hardware.devices=2", "hardware.strategy=ddp")


@pytest.fixture
def presets(tmp_path: Path) -> Path:
    """A folder of configs with the preset `two_processes`, which trains by `ddp`."""
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "two_processes.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /hardware: ddp_cpu\nhardware:\n  strategy: ddp\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    "overrides",
    [
        (*DDP, "seed=1,2"),
        ("hardware=cpu,ddp_gpu",),
        ("hardware=slurm", "seed=1,2", "launcher=slurm"),
        ("hardware.devices=2", "hardware.strategy=ddp_fork,ddp"),
        ("experiment=two_processes", "seed=1,2"),
        ("experiment=two_processes,multi30k_small",),
        (*DDP, "sweep=optuna", "training.gradient_clip=interval(0.5,2)"),
    ],
    ids=" ".join,
)
def test_sweep_with_strategy_ddp_is_refused(overrides: tuple[str, ...], presets: Path, tmp_path: Path) -> None:
    with ConfigSource(CONF, "config", presets) as source:
        plan = source.check_sweep([f"paths.runs={tmp_path / 'runs'}", *overrides])
    with pytest.raises(ExperimentError, match=REFUSED):
        plan.led()
    assert not (tmp_path / "runs").exists()


def test_sweep_with_several_jobs_on_a_gpu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    choices = [f"paths.runs={tmp_path / 'runs'}", "launcher=joblib", "hardware=gpu", "seed=1,2"]
    with ConfigSource(CONF, "config") as source:
        plan = source.check_sweep(choices)
    with pytest.raises(ExperimentError, match=r"hardware\.accelerator gpu runs one job of a sweep at a time"):
        plan.led()


def test_command_of_a_sweep_with_strategy_ddp_starts_no_point(folder: Path, command: Command) -> None:
    ended = command("train.py", "-m", *TINY, *DDP, "seed=1,2")
    assert ended.code == 1
    assert ended.err.startswith(f"error: {REFUSED}")
    assert len(ended.err.splitlines()) == 1
    assert not (folder / "runs").exists()
