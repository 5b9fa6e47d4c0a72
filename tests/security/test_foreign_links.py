"""Links that came with somebody's config lead nothing astray that is written or removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from entry_points import PIPELINES, TINY, Command

from attnlab.errors import ExperimentError
from attnlab.experiment.point import clear
from attnlab.sweeps.job import _output_to

IN_THEIRS = ("prepare.py", *TINY, "tracking=none", "hydra.run.dir=theirs", "hydra.verbose=true")


@pytest.fixture
def mine(folder: Path) -> Path:
    """A file of one's own that a link in `theirs` will lead to."""
    (folder / "theirs").mkdir()
    (folder / "mine.txt").write_text("mine")
    return folder / "mine.txt"


@pytest.mark.parametrize("name", ["prepare.log", ".hydra/config.yaml", ".hydra/overrides.yaml"])
def test_what_hydra_writes_goes_through_no_link(command: Command, mine: Path, name: str) -> None:
    link = mine.parent / "theirs" / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(mine)
    ended = command(*IN_THEIRS)
    assert (ended.code, mine.read_text()) == (1, "mine")
    assert f"{name} is a link, and what it leads to would be overwritten; remove the link" in ended.err
    assert "Traceback" not in ended.err
    link.unlink()
    assert command(*IN_THEIRS).code == 0


def test_nor_into_a_folder_that_one_leads_to(command: Command, mine: Path) -> None:
    (mine.parent / "folder").mkdir()
    (mine.parent / "theirs" / ".hydra").symlink_to(mine.parent / "folder")
    ended = command(*IN_THEIRS)
    assert ended.code == 1
    assert ".hydra is a link" in ended.err
    assert list((mine.parent / "folder").iterdir()) == []


@pytest.mark.parametrize("flags", [("-m", "seed=1,2"), ("hydra.mode=MULTIRUN",)], ids=" ".join)
def test_nor_does_a_sweep(command: Command, mine: Path, flags: tuple[str, ...]) -> None:
    (mine.parent / "theirs" / "multirun.yaml").symlink_to(mine)
    ended = command("prepare.py", *flags, *TINY, "tracking=none", "hydra.sweep.dir=theirs")
    assert (ended.code, mine.read_text()) == (1, "mine")
    assert "multirun.yaml is a link" in ended.err


def test_nor_does_optuna(command: Command, mine: Path) -> None:
    (mine.parent / "theirs" / "optimization_results.yaml").symlink_to(mine)
    sweep = ("sweep=optuna", "sweep.trials=1", "seed=choice(1,2)", "hydra.sweep.dir=theirs")
    ended = command("train.py", "-m", *TINY, "tracking=none", *sweep)
    assert (ended.code, mine.read_text()) == (1, "mine")
    assert "optimization_results.yaml is a link" in ended.err


def test_nor_do_jobs_beside_each_other(mine: Path) -> None:
    (mine.parent / "theirs" / "output.log").symlink_to(mine)
    with (
        pytest.raises(ExperimentError, match=r"output\.log is a link"),
        _output_to(mine.parent / "theirs/output.log", True),
    ):
        pass
    assert mine.read_text() == "mine"


def test_the_metrics_take_the_place_of_a_link(command: Command, mine: Path) -> None:
    (mine.parent / "theirs" / "metrics.json").symlink_to(mine)
    assert command("train.py", *TINY, "tracking=none", "hydra.run.dir=theirs").code == 0
    assert mine.read_text() == "mine"
    assert "token_nll" in json.loads((mine.parent / "theirs" / "metrics.json").read_text())


def test_a_training_that_is_begun_anew_removes_nothing_behind_one(mine: Path) -> None:
    point = mine.parent / "theirs" / "point"
    point.symlink_to(mine.parent)
    with pytest.raises(ExperimentError, match="point is a link, and what it leads to would be"):
        clear(point)
    assert mine.read_text() == "mine"


def test_but_links_in_its_folder_it_removes(mine: Path) -> None:
    theirs = mine.parent / "theirs"
    (theirs / "file").symlink_to(mine)
    (theirs / "folder").symlink_to(PIPELINES)
    clear(theirs)
    assert list(theirs.iterdir()) == []
    assert mine.read_text() == "mine"
    assert (PIPELINES / "train.py").is_file()
