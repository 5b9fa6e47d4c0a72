"""Asking costs no heavy import and no run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from entry_points import ATTENTIONS, PIPELINES, Command
from test_refusals import left

SCRIPTS = ["compose.py", "prepare.py", "train.py", "evaluate.py", "report.py"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_help(command: Command, folder: Path, script: str) -> None:
    ended = command(script, "--help")
    assert ended.code == 0, ended.err
    assert f"python pipelines/{script}" in ended.out
    if script != "compose.py":
        assert f"model/attention: {ATTENTIONS}" in ended.out
        assert "runs/plain/" in ended.out
    assert left(folder) == []


def test_help_imports_nothing_heavy(folder: Path) -> None:
    program = (
        f"import runpy, sys; sys.argv = ['train.py', '--help']\n"
        f"try: runpy.run_path({str(PIPELINES / 'train.py')!r}, run_name='__main__')\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'pytorch_lightning', 'mlflow', 'datasets', 'matplotlib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    assert ended.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [("--cfg", "job"), ("--info", "defaults"), ("--info", "all"), ("--hydra-help",)])
def test_asking_runs_nothing(command: Command, folder: Path, arguments: tuple[str, ...]) -> None:
    ended = command("train.py", *arguments)
    assert ended.code == 0, ended.err
    assert ended.out
    assert left(folder) == []
