"""A sweep whose command ends once Slurm has its jobs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cluster_sweeps import (
    ON_SLURM,
    POINT,
    SECONDS,
    SLOW,
    checked_counts,
    environment,
    leading,
    points_in_training,
)
from entry_points import mlflow_client, the_sweep
from slurm_cluster import SlurmCluster, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]


def attnlab(
    folder: Path, cluster: SlurmCluster, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """The command `attnlab` on the cluster."""
    program = str(Path(sys.executable).with_name("attnlab"))
    return subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=environment(cluster),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def test_last_job_ends_a_sweep_whose_command_did_not_wait(
    cluster: SlurmCluster, folder: Path
) -> None:
    sweep = (*POINT, *SLOW, *ON_SLURM, "launcher.wait=false", "seed=1,2,3")
    with leading(folder, cluster, *sweep) as leader:
        assert leader.wait() == 0, leader.said
        assert "Slurm has its jobs, and the last one of them ends it" in leader.said
    assert the_sweep(folder).read().ended is None

    wait_until(lambda: points_in_training(folder), "a training", lambda: leader.said, SECONDS)
    said = attnlab(folder, cluster, "sweep", "status")
    assert "no process leads it, and its jobs on Slurm go on" in said.stdout, said
    waited = attnlab(folder, cluster, "sweep", "wait")
    assert waited.returncode == 0, waited.stderr
    assert "3 finished of 3 points; compare them" in waited.stderr
    assert the_sweep(folder).read().ended is not None
    checked_counts(folder, points=3)


def test_last_job_trains_the_point_of_one_that_was_killed(
    cluster: SlurmCluster, folder: Path
) -> None:
    """Two points train, the job of one of them is killed, and nobody leads the sweep."""
    sweep = (*POINT, *SLOW, *ON_SLURM, "launcher.wait=false", "seed=1,2")
    with leading(folder, cluster, *sweep) as leader:
        assert leader.wait() == 0, leader.said
    print(leader.said)
    both = {"n1", "n2"}
    wait_until(
        lambda: set(points_in_training(folder).values()) == both,
        "a training on each node",
        lambda: leader.said,
        SECONDS,
    )
    print(attnlab(folder, cluster, "sweep", "status").stdout)

    victim = cluster.run("squeue", "--noheader", "--nodelist=n1", "--format=%A").split()
    cluster.run("scancel", "--signal=KILL", "--full", *victim)
    waited = attnlab(folder, cluster, "sweep", "wait")
    assert waited.returncode == 0, waited.stderr
    print(waited.stderr)
    print(attnlab(folder, cluster, "sweep", "status").stdout)
    assert the_sweep(folder).read().ended is not None
    checked_counts(folder, points=2)


def test_cancelled_jobs_of_a_sweep_leave_its_points_to_the_same_command(
    cluster: SlurmCluster, folder: Path
) -> None:
    sweep = (*POINT, *SLOW, *ON_SLURM, "seed=1,2,3")
    with leading(folder, cluster, *sweep, "launcher.wait=false") as leader:
        assert leader.wait() == 0, leader.said
    wait_until(lambda: points_in_training(folder), "a training", lambda: leader.said, SECONDS)
    cancelled = attnlab(folder, cluster, "sweep", "cancel")
    assert cancelled.returncode == 0, cancelled.stderr
    run = mlflow_client(folder).get_run(str(the_sweep(folder).read().run_id))
    assert run.info.status == "KILLED"
    waited = attnlab(folder, cluster, "sweep", "wait")
    assert waited.returncode == 1
    assert "3 of 3 points are not finished" in waited.stderr

    with leading(folder, cluster, *sweep) as leader:
        assert leader.wait() == 0, leader.said
    checked_counts(folder, points=3)
