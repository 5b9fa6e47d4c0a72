"""A study of 30 trainings by each launcher: the same rows, and how long it took."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from cluster_sweeps import SECONDS, Cluster, environment
from entry_points import PIPELINES
from ray_cluster import started_ray
from slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]

STUDY = {
    "title": "Which score copies sooner?",
    "text": "Sequences to copy.",
    "settings": [
        "data=copy", "data.num_pairs=400", "data.max_length=8", "model.encoder.embedding_size=16",
        "model.encoder.hidden_size=16", "model.decoder.hidden_size=32", "model.readout.size=32",
        "training.max_steps=60", "training.validate_every=60", "search=greedy",
        "hardware.threads=1",
    ],
    "systems": {name: [f"model/attention={name}"] for name in ("bahdanau", "general", "dot")},
    "seeds": 10,
    "measures": ["token_nll"],
    "expect": [
        {"says": "dot is sooner", "measure": "token_nll", "more": "bahdanau", "less": "dot"}
    ],
}  # fmt: skip


def minutes_of(
    folder: Path, name: str, launcher: Sequence[str] = (), cluster: Cluster | None = None
) -> float:
    """How long the study takes with a launcher; its results lie in a folder of this name."""
    (folder / "mine.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    began = time.monotonic()
    ended = subprocess.run(
        [
            sys.executable,
            str(PIPELINES / "replicate.py"),
            "mine.yaml",
            "--into",
            name,
            f"paths.runs={name}",
            *launcher,
        ],
        cwd=folder,
        env=environment(cluster),
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    minutes = (time.monotonic() - began) / 60
    print(f"\n{os.environ['PYTEST_CURRENT_TEST'].partition(' ')[0]}: {name} {minutes:.1f} minutes")
    return minutes


def rows_without_cost(folder: Path, name: str) -> list[dict[str, str]]:
    path = folder / name / "studies" / "mine" / "rows.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        del row["cpu_minutes"]
    return rows


def test_study_of_thirty_trainings_on_slurm_measures_what_one_process_measures(
    cluster: SlurmCluster, folder: Path
) -> None:
    minutes_of(folder, "serial")
    minutes_of(folder, "joblib", ("launcher=joblib", "launcher.workers=2"))
    of_slurm = ("launcher=slurm", "launcher.memory_gb=1", "launcher.minutes=20")
    minutes_of(folder, "slurm", of_slurm, cluster)
    rows = rows_without_cost(folder, "serial")
    assert len(rows) == 30
    assert rows_without_cost(folder, "joblib") == rows
    assert rows_without_cost(folder, "slurm") == rows


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_study_of_thirty_trainings_on_ray_measures_what_one_process_measures(folder: Path) -> None:
    minutes_of(folder, "serial")
    with started_ray() as cluster:
        of_ray = ("launcher=ray", f"launcher.address={cluster.address}")
        minutes_of(folder, "ray", of_ray, cluster)
    rows = rows_without_cost(folder, "serial")
    assert len(rows) == 30
    assert rows_without_cost(folder, "ray") == rows
