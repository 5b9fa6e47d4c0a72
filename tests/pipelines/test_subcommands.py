"""`attnlab train`, `attnlab compare`, ...: the scripts of pipelines/ as subcommands."""

from __future__ import annotations

import os
import runpy
import sys

import pytest
from entry_points import PIPELINES, Command, succeeded
from test_refusals import refused

from attnlab.commands import main
from attnlab.commands.pipelines import SUMMARIES
from attnlab.project import COMMAND_VARIABLE


@pytest.fixture
def by_attnlab(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a script as `attnlab` does, inside the test's process."""
    monkeypatch.setenv(COMMAND_VARIABLE, "attnlab")
    return command


def test_every_script_is_a_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    assert {path.stem for path in PIPELINES.glob("*.py")} == {*SUMMARIES}
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert {*SUMMARIES} <= {*listed}


def test_subcommand_runs_its_script_as_the_main_program(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, str]] = []

    def run_path(path: str, run_name: str) -> None:
        started.append((path, run_name))

    monkeypatch.setattr(runpy, "run_path", run_path)
    monkeypatch.setattr(sys, "argv", ["attnlab"])
    monkeypatch.setenv(COMMAND_VARIABLE, "")
    assert main(["train", "-m", "seed=1,2", "--config-dir", "mine"]) == 0

    script = str(PIPELINES / "train.py")
    assert started == [(script, "__main__")]
    assert sys.argv == [script, "-m", "seed=1,2", "--config-dir", "mine"]
    assert os.path.isabs(script)
    assert os.environ[COMMAND_VARIABLE] == "attnlab"


@pytest.mark.parametrize("name", SUMMARIES)
def test_help_of_a_subcommand_names_it(by_attnlab: Command, name: str) -> None:
    shown = succeeded(by_attnlab(f"{name}.py", "--help")).out
    assert f"attnlab {name}" in shown
    assert "python pipelines" not in shown


def test_hint_of_a_subcommand_names_a_subcommand(by_attnlab: Command) -> None:
    refused(by_attnlab("compare.py", "sweep=last"), "attnlab train -m ... starts one")
    refused(by_attnlab("prepare.py", "data=copy", "dry_run=true"), "dry_run is for attnlab train;")
