"""Sweeps and trainings on a cluster, and what they left behind as counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from entry_points import PIPELINES, mlflow_client, the_sweep
from mlflow import MlflowClient
from slurm_cluster import SlurmCluster, wait_until

# Some ten seconds of training, with checkpoints on the way.
POINT = (
    "data=copy", "data.num_pairs=200", "data.max_length=6", "model.encoder.embedding_size=8",
    "model.encoder.hidden_size=8", "model.decoder.hidden_size=16", "model.readout.size=16",
    "model.attention.size=8", "training.max_steps=40", "training.validate_every=10",
    "training.batching.size=16", "training.validation_search.max_length=8", "search.size=2",
    "search.max_length=8", "save_every_minutes=0.01", "tracking.heat_map_sentences=0",
    "chain=false", "+callbacks.recorded._target_=recorded_steps.RecordedSteps",
)  # fmt: skip
TRACKED = ("tracking.system_metrics=false",)
SLOW = ("+callbacks.recorded.seconds=0.2",)
QUICK = ("+callbacks.recorded.seconds=0",)
TRAIN = (sys.executable, str(PIPELINES / "train.py"))
ON_SLURM = (*TRACKED, "launcher=slurm", "launcher.memory_gb=1", "launcher.minutes=20")
SECONDS = 600.0  # that no sweep here needs


class Leader:
    """`python pipelines/train.py -m ...` in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], output: Path) -> None:
        self.process, self._output = process, output

    @property
    def said(self) -> str:
        return self._output.read_text()

    def wait(self) -> int:
        """The exit code."""
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the leader did not end: {self.said}") from None


class Cluster(Protocol):
    """What a cluster of any kind has."""

    @property
    def environment(self) -> dict[str, str]:
        """What a command on the cluster needs of its environment."""


def environment(cluster: Cluster | None = None) -> dict[str, str]:
    """Of a command on a cluster, or on none."""
    return {
        **os.environ,
        **({} if cluster is None else cluster.environment),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(Path(__file__).parent),  # of the callback
    }


@contextmanager
def leading(folder: Path, cluster: Cluster, *arguments: str) -> Iterator[Leader]:
    """A sweep's leader while the block runs; it does not outlive it."""
    output = folder / f"leader-{len(list(folder.glob('leader-*')))}.txt"
    command = [*TRAIN, "-m", *arguments]
    with output.open("w") as file:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(cluster), stdout=file, stderr=file, text=True
        )
    try:
        yield Leader(process, output)
    finally:
        process.kill()
        process.wait()


def submit(folder: Path, cluster: SlurmCluster, *options: str, command: str) -> str:
    """Give a command of a shell to `sbatch`; returns the id of the job."""
    return cluster.run(
        "sbatch",
        "--parsable",
        f"--chdir={folder}",
        f"--output={folder / 'job.txt'}",
        "--open-mode=append",
        "--mem=1000",
        *options,
        f"--wrap={command}",
        environment=environment(cluster),
    )


def weights(folder: Path) -> bytes:
    """The weights of the only model that was trained in a folder."""
    (path,) = (folder / "runs" / "points").glob("*/model/*.safetensors")
    return path.read_bytes()


def starts(folder: Path) -> list[int]:
    """The steps that the trainings started from."""
    return [event["step"] for event in events(folder) if event["event"] == "start"]


def events(folder: Path) -> list[dict[str, Any]]:
    """What the trainings wrote down, in their order."""
    path = folder / "events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ends(folder: Path) -> Counter[str]:
    """How often each point was trained to its end."""
    return Counter(event["point"] for event in events(folder) if event["event"] == "end")


def points_in_training(folder: Path) -> dict[str, str]:
    """Points that took a step, did not end yet, and the node that took it."""
    found: dict[str, str] = {}
    for event in events(folder):
        if event["event"] == "end":
            found.pop(event["point"], None)
        elif event["event"] == "step" and event["step"] > 3:
            found[event["point"]] = event["node"]
    return found


def wait_for_training_on(folder: Path, leader: Leader, *nodes: str) -> None:
    """Wait until points are trained on all these nodes at the same time."""

    def are_training() -> bool:
        assert leader.process.poll() is None, leader.said
        return set(nodes) <= set(points_in_training(folder).values())

    wait_until(are_training, f"trainings on {', '.join(nodes)}", lambda: leader.said, SECONDS)


def checked_counts(
    folder: Path, points: int, client: MlflowClient | None = None
) -> dict[str, object]:
    """The counts of a sweep, all of whose points were trained to their end, and each once.

    client: of the tracker; None for the database in the folder.

    They are printed before they are checked, as a row of the table in docs/hardware.md.
    """
    client = client or mlflow_client(folder)
    runs = client.search_runs(["1"])
    parent = the_sweep(folder).read().run_id
    trained = ends(folder)
    of_points = [run for run in runs if run.info.run_id != parent]
    jobs = Counter(job.status for job in the_sweep(folder).jobs())
    statuses = Counter(run.info.status for run in of_points)
    counts: dict[str, object] = {
        "points": points,
        "jobs": dict(jobs),
        "trained": len(trained),
        "trained twice": sum(count > 1 for count in trained.values()),
        "starts": len(starts(folder)),
        "runs of points in MLflow": dict(statuses),
        "run of the sweep": client.get_run(str(parent)).info.status,
    }
    print(f"\n{os.environ['PYTEST_CURRENT_TEST'].partition(' ')[0]}: {json.dumps(counts)}")
    assert jobs == {"finished": points}
    assert len(trained) == points
    assert set(trained.values()) == {1}
    assert statuses == {"FINISHED": points}
    assert len({run.info.run_name for run in of_points}) == points
    assert {run.data.tags.get("mlflow.parentRunId") for run in of_points} == {parent}
    assert counts["run of the sweep"] == "FINISHED"
    # Each validation is there once: at steps 10, 20, 30 and 40.
    for run in of_points:
        history = client.get_metric_history(run.info.run_id, "validation/free_running/bleu")
        assert sorted(value.step for value in history) == [10, 20, 30, 40]
    return counts
