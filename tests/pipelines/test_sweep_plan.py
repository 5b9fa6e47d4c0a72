"""Points that no sweep can hold are refused before the first of them starts."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from entry_points import TINY, Command

from attnlab.errors import ExperimentError
from attnlab.runs.sweep_record import SweepRecord

REFUSED = "hardware.strategy ddp starts its other processes with the command of the first one"
DDP = ("hardware.devices=2", "hardware.strategy=ddp")


@pytest.fixture
def presets(tmp_path: Path) -> Path:
    """A folder of configs with the preset `two_processes`, which trains by `ddp`."""
    (tmp_path / "theirs" / "experiment").mkdir(parents=True)
    (tmp_path / "theirs" / "experiment" / "two_processes.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /hardware: ddp_cpu\n"
        "hardware:\n  strategy: ddp\n"
    )
    return tmp_path / "theirs"


@pytest.mark.parametrize(
    "overrides",
    [
        (*DDP, "seed=1,2"),
        ("hardware=cpu,ddp_gpu",),
        ("hardware.devices=2", "hardware.strategy=ddp_fork,ddp"),
        ("experiment=two_processes", "seed=1,2"),
        ("experiment=two_processes,multi30k_small",),
        (*DDP, "sweep=optuna", "training.gradient_clip=interval(0.5,2)"),
    ],
    ids=" ".join,
)
def test_sweep_with_strategy_ddp_starts_no_point(
    overrides: tuple[str, ...],
    presets: Path,
    folder: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr("attnlab.training.hardware.cores", lambda: 8)
    ended = command("train.py", "-m", "--config-dir", str(presets), "tracking=none", *overrides)
    assert ended.code == 1
    assert ended.err.startswith(f"error: {REFUSED}")
    assert len(ended.err.splitlines()) == 1
    assert not (folder / "runs").exists()


def test_command_of_a_sweep_has_the_config_folder_and_the_search_path(
    presets: Path, folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    led: list[SweepRecord] = []

    def lead(record: SweepRecord, *others: Any) -> nullcontext[None]:
        led.append(record)
        raise ExperimentError("this test leads no sweep")

    monkeypatch.setattr("attnlab.experiment.sweep_plan.lead_sweep", lead)
    elsewhere = folder / "my_conf"
    elsewhere.mkdir()
    searched = f"hydra.searchpath=[file://{presets}]"
    command("train.py", "-m", "--config-dir", str(elsewhere), searched, *TINY, "seed=1,2")

    (record,) = led
    assert record.command == (
        *("python", "pipelines/train.py", "-m", "--config-dir", "my_conf", searched),
        *record.overrides,
    )
    assert "seed=1,2" in record.overrides


def test_large_grid_is_checked_by_each_value_alone(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.experiment.sweep_plan.LARGEST_CHECKED_GRID", 4)
    ended = command("prepare.py", "-m", *TINY, "seed=1,2,3", "training.max_steps=1,0")
    assert ended.code == 1
    assert ended.err.splitlines() == [
        "error: training.max_steps must be a whole number above 0 or null, got 0"
    ]
