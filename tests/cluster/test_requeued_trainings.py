"""Trainings that stop in the middle, are queued again, and end with the same weights."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from cluster_sweeps import (
    ON_SLURM,
    POINT,
    QUICK,
    SECONDS,
    SLOW,
    TRACKED,
    TRAIN,
    checked_counts,
    environment,
    events,
    leading,
    starts,
    submit,
    weights,
)
from entry_points import mlflow_client
from slurm_cluster import SlurmCluster, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]

# Two slurmd share this machine, whose name leads to none of its addresses in some containers.
TWO_NODES = (
    "export MASTER_ADDR=127.0.0.1 GLOO_SOCKET_IFNAME=lo; "
    "srun --ntasks-per-node=1 {train} hardware=slurm hardware.accelerator=cpu hardware.devices=1"
)


def test_sweep_whose_job_reaches_its_time_limit_goes_on_to_the_bit(
    cluster: SlurmCluster, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Slurm warns a job before its limit of two minutes; submitit has it queued again."""
    limited = ("launcher.minutes=2", "hydra.launcher.signal_delay_s=30")
    slow = "+callbacks.recorded.seconds=2.5"  # 100 seconds of training
    with leading(folder, cluster, *POINT, slow, *ON_SLURM, *limited, "seed=1") as leader:
        assert leader.wait() == 0, leader.said
    checked_counts(folder, points=1)
    # On a busy machine it reaches its limit more than once.
    steps = starts(folder)
    assert steps[0] == 0
    assert len(steps) > 1
    assert steps == sorted(set(steps))
    assert "failed" not in leader.said.replace("0 failed", "")

    whole = tmp_path_factory.mktemp("whole")
    command = [*TRAIN, *POINT, *QUICK, "seed=1", "tracking=none"]
    subprocess.run(command, cwd=whole, env=environment(cluster), check=True, capture_output=True)
    assert weights(folder) == weights(whole)


@pytest.fixture(scope="module")
def uninterrupted() -> dict[str, bytes]:
    """Weights that a training on two nodes ends with, found once."""
    return {}


@pytest.mark.parametrize("stopped_by", ["SIGUSR1", "SIGTERM"])
def test_training_on_two_nodes_that_is_requeued_ends_as_one_that_was_never_stopped(
    cluster: SlurmCluster,
    folder: Path,
    stopped_by: str,
    uninterrupted: dict[str, bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """By SIGUSR1, which `#SBATCH --signal=USR1@90` sends, and by `scontrol requeue`."""
    train = shlex.join([*TRAIN, *POINT, *SLOW, *TRACKED])
    job = submit(folder, cluster, "--nodes=2", command=TWO_NODES.format(train=train))
    said = folder / "job.txt"

    def is_in_the_middle() -> bool:
        return any(event["step"] > 8 for event in events(folder))

    wait_until(is_in_the_middle, "a training on two nodes", said.read_text, SECONDS)
    if stopped_by == "SIGUSR1":
        cluster.run("scancel", "--signal=USR1", job)
    else:
        cluster.run("scontrol", "requeue", job)
    wait_until(lambda: job not in cluster.jobs(), "the job's end", said.read_text, SECONDS)

    output = said.read_text()
    assert f"{stopped_by}: saved at step" in output
    if stopped_by == "SIGUSR1":
        assert f"; Slurm queues job {job} again, which resumes from there" in output
    first, second = starts(folder)
    assert first == 0 < second
    (run,) = mlflow_client(folder).search_runs(["1"])
    assert run.info.status == "FINISHED"

    if not uninterrupted:
        whole = tmp_path_factory.mktemp("whole")
        train = shlex.join([*TRAIN, *POINT, *QUICK, "tracking=none"])
        job = submit(whole, cluster, "--nodes=2", command=TWO_NODES.format(train=train))
        wait_until(lambda: job not in cluster.jobs(), "the job's end", said.read_text, SECONDS)
        assert starts(whole) == [0], (whole / "job.txt").read_text()
        uninterrupted["weights"] = weights(whole)
    assert weights(folder) == uninterrupted["weights"]
