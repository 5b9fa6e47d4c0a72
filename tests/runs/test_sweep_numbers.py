"""Numbers of the points of a search, of one leader and of several."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.runs import sweep_numbers
from attnlab.runs.sweep_numbers import NumbersOfLeader, PointNumbers
from attnlab.runs.sweep_record import JobRecord, SweepFolder, SweepRecord, choices_of


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    folder = SweepFolder(tmp_path / "sweeps" / "one")
    folder.write(SweepRecord("one", "a", ["a"], [], 4, None, 0.0))
    return folder


def job(number: int, *overrides: str) -> JobRecord:
    choices = choices_of(overrides, ["a"])
    return JobRecord(number, f"point {number}", choices, list(overrides), "running", 0, 0, "out")


def test_lone_leader_numbers_its_points_from_zero() -> None:
    for _ in range(2):
        numbers = PointNumbers(None)
        assert [numbers.take([["a=1"], ["a=2"]]), numbers.take([["a=3"]])] == [0, 2]


def test_leaders_that_share_a_search_take_different_numbers(
    folder: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []
    for leader in ("host 1 0.0", "host 2 0.0", "host 1 0.0"):
        monkeypatch.setattr(sweep_numbers, "this_process", lambda leader=leader: leader)
        starts.append(PointNumbers(folder).take([["a=1"], ["a=2"]]))
    assert starts == [0, 2, 4]
    of_first = NumbersOfLeader(folder.path, "host 1 0.0")
    assert [number for number in range(8) if number in of_first] == [0, 1, 4, 5]
    folder.write_job(job(2, "a=1"))
    folder.write_job(job(4, "a=1"))
    assert [each.number for each in folder.part(of_first).jobs()] == [4]


def test_point_that_is_taken_up_again_loses_its_old_number(folder: SweepFolder) -> None:
    numbers = PointNumbers(folder)
    numbers.take([["a=1"], ["a=2"]])
    folder.write_job(job(0, "a=1", "sweep.trials=2"))
    folder.write_job(job(1, "a=2", "sweep.trials=2"))
    assert numbers.take([["a=2", "sweep.trials=3"]]) == 2
    assert [each.number for each in folder.jobs()] == [0]
