"""Sweeps on a cluster of Ray, where Ray is installed (`pip install 'attnlab[ray]'`)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cluster_sweeps import (
    POINT,
    QUICK,
    SLOW,
    TRACKED,
    TRAIN,
    checked_counts,
    environment,
    events,
    leading,
    points_in_training,
    weights,
)
from ray_cluster import RayCluster, started_ray
from slurm_cluster import wait_until

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]


def test_sweep_on_ray_with_a_killed_node_trains_each_point_once(folder: Path) -> None:
    with started_ray() as cluster:
        on_ray = (*TRACKED, "launcher=ray", f"launcher.address={cluster.address}")
        with leading(folder, cluster, *POINT, *SLOW, *on_ray, "seed=1,2,3,4") as leader:
            wait_until(
                lambda: leader.process.poll() is not None or len(points_in_training(folder)) == 2,
                "two trainings at once",
                lambda: leader.said,
                600,
            )
            cluster.kill_node(1)
            assert leader.wait() == 0, leader.said
    checked_counts(folder, points=4)
    # One went on from its checkpoint on the other node.
    first_steps = [event["step"] for event in events(folder) if event["event"] == "start"]
    assert len(first_steps) == 5
    assert sorted(first_steps)[:4] == [0, 0, 0, 0]


def test_point_on_ray_has_the_weights_of_one_without_it(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    untracked = (*POINT, *QUICK, "tracking=none", "seed=1")
    # Without a cluster, Ray starts one of this machine alone.
    for place, launcher in ((folder, "ray"), (alone, "serial")):
        command = [*TRAIN, "-m", *untracked, f"launcher={launcher}"]
        ended = subprocess.run(
            command, cwd=place, env=environment(), capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
    assert weights(folder) == weights(alone)


def test_cluster_that_does_not_answer_is_a_sentence(folder: Path) -> None:
    nobody = RayCluster(folder)
    command = [*TRAIN, "-m", *POINT, *QUICK, "launcher=ray", f"launcher.address={nobody.address}"]
    ended = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "launcher.address: no cluster of Ray answers" in ended.stderr
    assert "Traceback" not in ended.stderr
