"""A sweep of twelve points over two nodes, whose tracker is a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_sweeps import ON_SLURM, POINT, QUICK, checked_counts, events, leading
from mlflow import MlflowClient
from servers import mlflow_server
from slurm_cluster import NODES, SlurmCluster

POINTS = ("model/attention=bahdanau,general,concat", "seed=1,2,3,4")
# A score without a size refuses one.
ANY_ATTENTION = tuple(choice for choice in POINT if not choice.startswith("model.attention."))


@pytest.mark.cluster
@pytest.mark.timeout(1800)
def test_sweep_of_twelve_points_over_two_nodes_through_a_server(
    cluster: SlurmCluster, folder: Path
) -> None:
    database = f"sqlite:///{folder}/runs/mlflow.db"
    with mlflow_server(folder, database, "--workers", "1") as address:
        sweep = (*ANY_ATTENTION, *QUICK, *ON_SLURM, *POINTS, f"tracking.uri={address}")
        with leading(folder, cluster, *sweep) as leader:
            assert leader.wait() == 0, leader.said
        checked_counts(folder, points=12, client=MlflowClient(tracking_uri=address))
    assert {event["node"] for event in events(folder)} == set(NODES)
