"""What a dry run prints, that it leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from entry_points import ANY_ATTENTION, TINY, Command, succeeded
from test_refusals import refused

UNTRACKED = "tracking=none"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    return place


def test_dry_run_writes_nothing(folder: Path, command: Command, cache: Path) -> None:
    ended = succeeded(command("train.py", *TINY, UNTRACKED, "dry_run=true"))
    assert "Dry run: nothing was trained or kept" in ended.out
    assert list(folder.iterdir()) == list(cache.iterdir()) == []


def test_dry_run_of_a_sweep_has_a_row_for_each_point(folder: Path, command: Command) -> None:
    varied = (
        "-m",
        *ANY_ATTENTION,
        UNTRACKED,
        "model/attention=dot,none",
        "training.max_steps=4,400000",
    )
    ended = succeeded(command("train.py", *varied, "dry_run=true"))
    assert "4 experiments, one after the other: about" in ended.out
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in ended.out.splitlines()
        if line[:1] == "│"
    ]
    firsts = [row for row in rows if row[-1]]
    steps = [row[-4] for row in firsts]
    # In the order of the sweep: the shared settings name max_steps first.
    assert steps == ["4", "4", "400,000", "400,000"]
    minutes = [float(row[-1]) for row in firsts]
    assert minutes[0] < minutes[2]
    assert minutes[1] < minutes[3]
    assert list(folder.iterdir()) == []


def test_dry_run_of_another_command_or_of_two_processes_is_refused(
    folder: Path, command: Command
) -> None:
    refused(
        command("prepare.py", *TINY, "dry_run=true"), "dry_run is for python pipelines/train.py"
    )
    two = ("hardware.devices=2", "hardware.strategy=ddp_fork")
    refused(
        command("train.py", *TINY, UNTRACKED, "dry_run=true", *two), "dry_run measures one process"
    )
    assert list(folder.iterdir()) == []
