"""Points that no sweep can hold are refused before the first of them starts."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
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


@pytest.fixture
def led(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The arguments of each sweep that a command would lead; it ends with an error instead."""
    calls: list[tuple[Any, ...]] = []

    def lead(*arguments: Any) -> nullcontext[None]:
        calls.append(arguments)
        raise ExperimentError("this test leads no sweep")

    monkeypatch.setattr("attnlab.experiment.sweep_plan.lead_sweep", lead)
    return calls


def test_command_of_a_sweep_has_the_config_folder_and_the_search_path(
    presets: Path, folder: Path, command: Command, led: list[tuple[Any, ...]]
) -> None:
    elsewhere = folder / "my_conf"
    elsewhere.mkdir()
    searched = f"hydra.searchpath=[file://{presets}]"
    command("train.py", "-m", "--config-dir", str(elsewhere), searched, *TINY, "seed=1,2")

    ((record, *_),) = led
    assert isinstance(record, SweepRecord)
    assert record.command == (
        *("python", "pipelines/train.py", "-m", "--config-dir", "my_conf", searched),
        *record.overrides,
    )
    assert "seed=1,2" in record.overrides


def test_plan_counts_the_points_that_the_sweeper_launches(
    folder: Path, command: Command, led: list[tuple[Any, ...]]
) -> None:
    command("train.py", "-m", *TINY, "seed=1,2", "training.gradient_clip=1,2", "seed=3,4,3")
    command("train.py", "-m", *TINY, "seed=1,2", "training.gradient_clip=1,2", "seed=3")

    records = [record for record, *_ in led]
    assert [record.points for record in records] == [4, 2]
    assert records[1].varies == ["training.gradient_clip"]


@pytest.mark.parametrize(
    ("task", "overrides"),
    [
        ("translation", TINY),
        ("classification", ("task=classification", "data=rt_polarity", "data.path=texts")),
    ],
    ids=["translation", "classification"],
)
def test_sweep_is_led_with_the_task_that_its_points_share(
    task: str,
    overrides: tuple[str, ...],
    folder: Path,
    command: Command,
    led: list[tuple[Any, ...]],
) -> None:
    command("train.py", "-m", *overrides, "seed=1,2")
    views = [view for _, _, _, _, view, *_ in led]
    assert [view.task for view in views] == [task]


LAUNCHERS = ("hydra", "hydra_plugins.hydra_joblib_launcher")


@pytest.fixture
def levels_of_launchers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The levels of the launchers' loggers when a sweep would start; it ends with an error instead.

    Before it the loggers are as a new process has them, and after the test as before it.
    """
    loggers = [logging.getLogger(name) for name in LAUNCHERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.NOTSET)
    found: list[str] = []

    def lead(*_: Any) -> nullcontext[None]:
        found.extend(logging.getLevelName(logger.getEffectiveLevel()) for logger in loggers)
        raise ExperimentError("this test leads no sweep")

    monkeypatch.setattr("attnlab.experiment.sweep_plan.lead_sweep", lead)
    yield found
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize(
    ("verbose", "levels"),
    [
        ("false", ["WARNING", "WARNING"]),
        ("true", ["DEBUG", "DEBUG"]),
        ("hydra", ["DEBUG", "WARNING"]),
        ("[hydra_plugins.hydra_joblib_launcher]", ["WARNING", "DEBUG"]),
    ],
)
def test_launchers_are_silenced_unless_hydra_verbose_asks_for_them(
    verbose: str,
    levels: list[str],
    folder: Path,
    command: Command,
    levels_of_launchers: list[str],
) -> None:
    command("train.py", "-m", *TINY, "seed=1,2", f"hydra.verbose={verbose}")
    assert levels_of_launchers == levels


def test_large_grid_is_checked_by_each_value_alone(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.experiment.sweep_plan.LARGEST_CHECKED_GRID", 4)
    ended = command("prepare.py", "-m", *TINY, "seed=1,2,3", "training.max_steps=1,0")
    assert ended.code == 1
    assert ended.err.splitlines() == [
        "error: training.max_steps must be a whole number above 0 or null, got 0"
    ]


def test_missing_ray_is_reported_before_a_sweep_is_opened(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    ended = command("train.py", "-m", *TINY, "launcher=ray", "seed=1,2")
    assert ended.code == 1
    assert ended.err.splitlines() == [
        "error: launcher: Ray is not installed; pip install 'attnlab[ray]'"
    ]
    assert not (folder / "runs").exists()


def test_cluster_of_ray_that_does_not_answer_is_reported_before_a_sweep_is_opened(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    on_ray = ("launcher=ray", f"launcher.address={address}")
    ended = command("train.py", "-m", *TINY, *on_ray, "seed=1,2")
    assert ended.code == 1
    assert ended.err.startswith("error: launcher.address: no cluster of Ray answers")
    assert not (folder / "runs").exists()
