"""A search whose points start as soon as a job of the cluster has ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_sweeps import ON_SLURM, POINT, TRACKED, checked_counts, leading
from entry_points import the_sweep
from ray_cluster import started_ray
from slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]

SEARCH = (
    "sweep=optuna", "sweep.sampler=grid", "sweep.wait_for_batch=false", "launcher.workers=2",
    # Seconds that are added to each step; with its seed the sampler takes the longest one early.
    "+callbacks.recorded.seconds=choice(0,0.01,0.02,1)", "sweep.seed=1",
)  # fmt: skip


def started_before_the_first_two_had_ended(folder: Path) -> int:
    """The jobs beside the first two that began while one of these ran, where batches would wait."""
    first, second, *others = sorted(the_sweep(folder).jobs(), key=lambda job: job.started)
    assert first.ended is not None
    assert second.ended is not None
    batch_ended = max(first.ended, second.ended)
    return sum(job.started < batch_ended for job in others)


def test_search_on_slurm_starts_a_point_when_a_job_has_ended(
    cluster: SlurmCluster, folder: Path
) -> None:
    search = (*POINT, *ON_SLURM, *SEARCH)
    with leading(folder, cluster, *search) as leader:
        assert leader.wait() == 0, leader.said
    assert "4 trials: 4 complete, 0 pruned, 0 failed" in leader.said
    checked_counts(folder, points=4)
    assert started_before_the_first_two_had_ended(folder) > 0

    with leading(folder, cluster, *search) as leader:
        assert leader.wait() == 0, leader.said
    assert "4 of 4 points finished, 0 of them trained now" in leader.said


def test_search_on_ray_starts_a_point_when_a_task_has_ended(folder: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    with started_ray() as cluster:
        on_ray = (*TRACKED, "launcher=ray", f"launcher.address={cluster.address}")
        with leading(folder, cluster, *POINT, *on_ray, *SEARCH) as leader:
            assert leader.wait() == 0, leader.said
    assert "4 trials: 4 complete, 0 pruned, 0 failed" in leader.said
    checked_counts(folder, points=4)
    assert started_before_the_first_two_had_ended(folder) > 0
