"""A sweep over two nodes, one of which dies in the middle."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_sweeps import (
    ON_SLURM,
    POINT,
    SLOW,
    checked_counts,
    events,
    leading,
    points_in_training,
    wait_for_training_on,
)
from slurm_cluster import SlurmCluster


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_sweep_of_four_points_with_a_killed_node_trains_each_point_once(
    cluster: SlurmCluster, folder: Path
) -> None:
    with leading(folder, cluster, *POINT, *SLOW, *ON_SLURM, "seed=1,2,3,4") as leader:
        wait_for_training_on(folder, leader, "n1", "n2")
        (victim,) = [point for point, node in points_in_training(folder).items() if node == "n1"]
        cluster.kill_node("n1")
        cluster.restart_node("n1")
        assert leader.wait() == 0, leader.said
    checked_counts(folder, points=4)

    first, second = [
        event["step"]
        for event in events(folder)
        if event["point"] == victim and event["event"] == "start"
    ]
    assert first == 0 < second  # it went on from its checkpoint
