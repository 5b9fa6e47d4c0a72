"""Jobs that somebody cancels, a leader that is cancelled, and a sweep that is given twice."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
from cluster_sweeps import (
    ON_SLURM,
    POINT,
    SECONDS,
    SLOW,
    TRAIN,
    checked_counts,
    leading,
    points_in_training,
    starts,
    submit,
    wait_for_training_on,
)
from entry_points import mlflow_client, the_sweep
from slurm_cluster import SlurmCluster, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]


def test_cancelled_jobs_without_accounting_fail_their_points_alone(
    cluster_without_accounting: SlurmCluster, folder: Path
) -> None:
    """A running job and one that waits; the same command then trains what is missing."""
    cluster = cluster_without_accounting
    sweep = (*POINT, *SLOW, *ON_SLURM, "seed=1,2,3,4")
    with leading(folder, cluster, *sweep) as leader:
        wait_for_training_on(folder, leader, "n1", "n2")
        jobs = cluster.jobs()
        (running, _) = [job for job, state in jobs.items() if state == "RUNNING"]
        (waiting, _) = [job for job, state in jobs.items() if state == "PENDING"]
        cluster.run("scancel", running, waiting)
        assert leader.wait() == 1, leader.said

    assert f"its Slurm job {running} is over: it was cancelled" in leader.said
    # Slurm forgets a task of an array at once that never ran.
    assert f"its Slurm job {waiting} is over: " in leader.said
    assert leader.said.count("is over: ") == 2
    assert "2 of 4 points finished" in leader.said
    assert re.search(r"2 of 4 jobs (failed|were stopped|failed or were stopped): ", leader.said)
    assert "sacct" not in leader.said
    assert "Traceback" not in leader.said
    assert Counter(job.gave_up for job in the_sweep(folder).jobs()) == {False: 2, True: 2}
    statuses = Counter(run.info.status for run in mlflow_client(folder).search_runs(["1"]))
    assert statuses == {"FINISHED": 2, "KILLED": 1, "FAILED": 1}  # the sweep's own has failed

    with leading(folder, cluster, *sweep) as leader:
        assert leader.wait() == 0, leader.said
    checked_counts(folder, points=4)


def test_sweep_whose_leader_was_cancelled_is_joined_by_the_same_command(
    cluster: SlurmCluster, folder: Path
) -> None:
    """The first leader is a job itself. The second waits for its jobs, the third is refused."""
    sweep = (*POINT, *SLOW, *ON_SLURM, "seed=1,2,3")
    first = submit(folder, cluster, command=shlex.join([*TRAIN, "-m", *sweep]))
    said = folder / "job.txt"
    wait_until(lambda: points_in_training(folder), "a training", said.read_text, SECONDS)
    hold = folder / "hold"  # so that the jobs outlast the start of two commands
    hold.touch()
    cluster.run("scancel", first)
    wait_until(lambda: first not in cluster.jobs(), "the end of the leader")
    assert cluster.jobs()  # they go on without it

    with leading(folder, cluster, *sweep) as second:
        joins = "waits for jobs that an earlier command gave to Slurm: "
        wait_until(lambda: joins in second.said, joins, lambda: second.said, SECONDS)
        with leading(folder, cluster, *sweep) as third:
            assert third.wait() == 1
            assert "is running already" in third.said
        hold.unlink()
        assert second.wait() == 0, second.said
    checked_counts(folder, points=3)
    assert starts(folder) == [0, 0, 0]
