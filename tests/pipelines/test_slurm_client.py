"""A machine with Slurm's client.

Its trainings are as quiet as elsewhere, and a refusal of `sbatch` is reported in a sentence.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from entry_points import PIPELINES, TINY, Command, succeeded, the_sweep

SCRIPTS = {
    "srun": "exit 0",
    "sbatch": "echo 'sbatch: error: invalid partition specified: nowhere' >&2; exit 1",
}


@pytest.fixture
def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`srun`, which does nothing, and `sbatch`, which refuses, in PATH."""
    programs = folder / "slurm"
    programs.mkdir()
    for name, text in SCRIPTS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")


@pytest.mark.slow
@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    "more", [(), ("+trainer.detect_anomaly=true",)], ids=["plain", "with an argument"]
)
def test_training_beside_slurms_client_prints_no_warning_of_srun(
    folder: Path, more: tuple[str, ...]
) -> None:
    train = [
        sys.executable,
        str(PIPELINES / "train.py"),
        *TINY,
        "tracking=none",
        "chain=false",
        *more,
    ]
    ended = subprocess.run(train, cwd=folder, capture_output=True, text=True, check=True)
    assert "srun" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 1  # of its validation


@pytest.mark.usefixtures("client")
def test_jobs_that_slurm_does_not_take_are_reported_in_a_sentence(command: Command) -> None:
    ended = command("train.py", "-m", *TINY, "tracking=none", "seed=1,2", "launcher=slurm")
    assert ended.code == 1
    assert "Traceback" not in ended.err
    assert (
        "error: launcher: Slurm does not take the jobs: sbatch: error: invalid partition specified"
        in ended.err
    )


@pytest.mark.usefixtures("client")
def test_points_beyond_the_largest_array_go_to_further_ones_that_wait(
    command: Command, folder: Path
) -> None:
    programs = folder / "slurm"
    scripts = {
        "scontrol": "echo 'MaxArraySize = 2'",
        "sbatch": (
            f"cd {programs}\necho of >> asked\ngrep -oE '(array|dependency)=.*' $1 >> asked\n"
            "echo Submitted batch job $(grep -c of asked)"
        ),
    }
    for name, text in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    succeeded(
        command("train.py", "-m", *TINY, "tracking=none", "launcher=slurm", "launcher.wait=false",
                "seed=1,2,3,4,5")
    )  # fmt: skip
    assert (programs / "asked").read_text().split() == [
        "of", "array=0-1%2",
        "of", "array=0-1%2", "dependency=afterany:1",
        "of", "dependency=afterany:2",
    ]  # fmt: skip
    submitted = json.loads((the_sweep(folder).path / "slurm.json").read_text())["submitted"]
    assert [each["job"] for each in submitted] == ["1_0", "1_1", "2_0", "2_1", "3"]
