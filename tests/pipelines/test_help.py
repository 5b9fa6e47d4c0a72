"""Asking costs no heavy import and no run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from entry_points import ATTENTIONS, PIPELINES, Command, succeeded
from test_refusals import left

SCRIPTS = ["compose.py", "prepare.py", "train.py", "evaluate.py", "report.py", "show.py"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_of_a_stage_shows_how_to_start_it_and_its_groups(
    command: Command, folder: Path, script: str
) -> None:
    ended = succeeded(command(script, "--help"))
    assert f"python pipelines/{script}" in ended.out
    if script not in ("compose.py", "show.py"):
        assert f"model/attention: {ATTENTIONS}" in ended.out
        assert "runs/plain/" in ended.out
    assert left(folder) == []


def test_help_of_compare_shows_its_settings(command: Command, folder: Path) -> None:
    ended = succeeded(command("compare.py", "--help"))
    for expected in (
        "python pipelines/compare.py sweep=last",
        "baseline: null",
        "samples: 1000",
        "tracking: mlflow",
    ):
        assert expected in ended.out
    assert left(folder) == []


def test_help_imports_nothing_heavy(folder: Path) -> None:
    program = (
        "import runpy, sys\n"
        "for path in "
        f"{[str(PIPELINES / script) for script in ('compare.py', 'replicate.py', 'train.py')]!r}:\n"
        "    sys.argv = [path, '--help']\n"
        "    try: runpy.run_path(path, run_name='__main__')\n"
        "    except SystemExit as ended: assert not ended.code\n"
        "heavy = {'torch', 'pytorch_lightning', 'mlflow', 'datasets', 'matplotlib', 'scipy', "
        "'sacrebleu'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    assert all(
        f"python pipelines/{script}" in ended.stdout
        for script in ("train.py", "compare.py", "replicate.py")
    )
    assert ended.stdout.strip().splitlines()[-1] == "[]"
    assert left(folder) == []


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("script", ["train.py", "compare.py", "show.py"])
def test_help_whose_reader_has_gone_away_ends_silently(
    folder: Path, script: str, unbuffered: str
) -> None:
    """As in `python pipelines/train.py --help | head -3`.

    There, `head` ends before anything was written.
    """
    reading, writing = os.pipe()
    os.close(reading)
    command, environment = (
        [sys.executable, PIPELINES / script, "--help"],
        {**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    ended = subprocess.run(command, cwd=folder, env=environment, stdout=writing, stderr=PIPE)
    os.close(writing)
    assert ended.stderr == b""
    assert ended.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    "arguments", [("--cfg", "job"), ("--info", "defaults"), ("--info", "all"), ("--hydra-help",)]
)
def test_asking_runs_nothing(command: Command, folder: Path, arguments: tuple[str, ...]) -> None:
    ended = succeeded(command("train.py", *arguments))
    assert ended.out
    assert left(folder) == []
