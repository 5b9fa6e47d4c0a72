"""Commands that are killed at random moments and started again.

They end with the bytes of commands that were never killed. Each kind is killed once; ATTNLAB_FAULTS
sets another number:

    ATTNLAB_FAULTS=25 python -m pytest tests/faults/test_kills.py -s
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from mlflow import MlflowClient

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
KILLS = int(os.environ.get("ATTNLAB_FAULTS", "1"))
SECONDS = 900.0  # that no command here needs
VOLATILE = ("time/", "speed/", "system/")

DATA = ("data=copy", "data.num_pairs=400", "data.max_length=6")
MODEL = (
    "model.encoder.embedding_size=8", "model.encoder.hidden_size=8", "model.encoder.dropout=0.2",
    "model.decoder.hidden_size=16", "model.readout.size=16", "search.size=2", "search.max_length=8",
)  # fmt: skip
# Epochs of 20 steps: it is killed in the middle of some. A checkpoint is written every few steps.
TRAINING = (
    "training.max_steps=70", "training.validate_every=9", "training.batching.size=16",
    "training.log_every=1", "training.validation_search.max_length=8",
    "training.teacher_forcing.ratio=0.5", "training.patience=6", "save_every_minutes=0.002",
    "tracking.system_metrics=false", "tracking.heat_map_sentences=1",
)  # fmt: skip
ALL = (*DATA, *MODEL, *TRAINING)


@dataclass(frozen=True)
class Kind:
    """A command that is killed. before: what is run first, and never killed."""

    script: str
    arguments: tuple[str, ...]
    before: tuple[tuple[str, tuple[str, ...]], ...] = ()


BUILT = ("paths.data=built/data", "paths.model=built/model")
KINDS = {
    "preparing": Kind("prepare.py", (*ALL, "data.num_pairs=3000", "paths.data=built/data")),
    "training": Kind(
        "train.py",
        (*ALL, *BUILT, "chain=false", "hardware.workers=2"),
        (("prepare.py", (*ALL, *BUILT)),),
    ),
    "training in two processes": Kind(
        "train.py",
        (*ALL, *BUILT, "chain=false", "hardware=ddp_cpu"),
        (("prepare.py", (*ALL, *BUILT)),),
    ),
    "evaluating": Kind(
        "evaluate.py",
        (*ALL, *BUILT, "paths.evaluation=built/evaluation"),
        (("prepare.py", (*ALL, *BUILT)), ("train.py", (*ALL, *BUILT, "chain=false"))),
    ),
    "sweeping": Kind(
        "train.py",
        ("-m", *ALL, "training.max_steps=30", "model/attention=dot,none", "seed=1,2"),
        (("prepare.py", ALL),),
    ),
}

TAKE_MINUTES = ("training in two processes", "sweeping")


@dataclass(frozen=True)
class Ended:
    """How a command ended; it was killed where it has no code."""

    code: int | None
    err: str
    seconds: float


@pytest.fixture
def run(warm_python: Path) -> Callable[..., Ended]:
    def run(
        script: str, arguments: tuple[str, ...], folder: Path, seconds: float = SECONDS
    ) -> Ended:
        """Run a command in a folder; after so many seconds it is killed with all its processes."""
        command = [warm_python, PIPELINES / script, *arguments]
        began = time.monotonic()
        try:
            ended = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, timeout=seconds
            )
        except subprocess.TimeoutExpired as killed:
            return Ended(None, str(killed.stderr), time.monotonic() - began)
        return Ended(ended.returncode, ended.stderr, time.monotonic() - began)

    return run


def finished(ended: Ended) -> Ended:
    assert ended.code == 0, ended.err
    return ended


def outputs(folder: Path) -> dict[str, bytes]:
    """The files of a finished command, less those that differ from run to run."""
    found = {}
    for place in ("built", "runs/points", "runs/data", "runs/sweeps"):
        for path in sorted((folder / place).rglob("*")):
            inside = path.relative_to(folder)
            if not path.is_file() or path.name in ("lock", "leader.lock", "history.log"):
                continue
            # What a killed process had half written, `.<name>.<random>`, stays beside the outputs.
            if any(part.startswith(".") for part in inside.parts):
                continue
            if inside.parts[0] == "built" or {
                "model",
                "training",
                "evaluated",
                "data",
                "evaluation",
            } & {*inside.parts}:
                found[str(inside)] = path.read_bytes()
    return found


def differences(found: Mapping[str, object], expected: Mapping[str, object]) -> list[str]:
    """What is missing, more than expected, or another."""
    names = sorted(found.keys() | expected.keys())
    return [
        f"{name} differs"
        for name in names
        if name not in found or found[name] != expected.get(name)
    ]


def tracked(folder: Path) -> dict[str, object]:
    """Status, curves and artifacts of every run in MLflow, by the run's name."""
    if not (folder / "runs" / "mlflow.db").exists():
        return {}
    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/runs/mlflow.db")
    found: dict[str, object] = {}
    runs = client.search_runs([client.get_experiment_by_name("attnlab").experiment_id])
    assert not [
        name for name, count in Counter(run.info.run_name for run in runs).items() if count > 1
    ]
    for run in runs:
        names = sorted(
            name for name in run.data.metrics if not name.startswith((*VOLATILE, "sweep/"))
        )
        curves = {name: client.get_metric_history(run.info.run_id, name) for name in names}
        for name, curve in curves.items():
            assert len(curve) == len({point.step for point in curve}), f"{name} was logged twice"
        points = {
            name: sorted((point.step, point.value) for point in curve)
            for name, curve in curves.items()
        }
        artifacts = sorted(info.path for info in client.list_artifacts(run.info.run_id))
        found[run.info.run_name] = (run.info.status, points, artifacts)
    return found


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in TAKE_MINUTES else ()) for name in KINDS],
)
def test_killed_command_started_again_gives_same_bytes(
    name: str, tmp_path: Path, run: Callable[..., Ended], empty_database: Path
) -> None:
    kind, start = KINDS[name], tmp_path / "start"
    (start / "runs").mkdir(parents=True)
    # The others are also killed while they make one
    if name in ("training in two processes", "sweeping"):
        shutil.copy(empty_database, start / "runs" / "mlflow.db")
    for script, arguments in kind.before:
        finished(run(script, arguments, start))
    whole = tmp_path / "whole"
    shutil.copytree(start, whole)
    seconds = finished(run(kind.script, kind.arguments, whole)).seconds
    expected, expected_runs = outputs(whole), tracked(whole)
    assert expected

    draw, moments, wrong = random.Random(name), [], []
    for number in range(10 * KILLS):
        if len(moments) == KILLS:
            break
        folder = tmp_path / str(number)
        shutil.copytree(start, folder)
        moment = draw.uniform(0, seconds)
        if run(kind.script, kind.arguments, folder, moment).code is not None:
            shutil.rmtree(folder)  # it was faster than the one before
            continue
        moments.append(moment)
        again = run(kind.script, kind.arguments, folder)
        if again.code != 0:
            faults = [f"ended with {again.code}: {again.err}"]
        else:
            faults = differences(outputs(folder), expected) + differences(
                tracked(folder), expected_runs
            )
        wrong += [
            f"killed after {moment:.3f} s of {seconds:.3f} s, folder {number}: {fault}"
            for fault in faults
        ]
        if not faults:
            shutil.rmtree(folder)
    assert wrong == [], "\n".join(wrong)
    assert len(moments) == KILLS
    record = {
        "kind": name,
        "kills": KILLS,
        "seconds": round(seconds, 1),
        "moments": [round(m, 2) for m in moments],
    }
    print(f"\n{json.dumps(record)}")
