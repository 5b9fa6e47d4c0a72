"""Clusters for the tests of this folder: one with accounting, one without."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster, missing_for_a_cluster, started_cluster

# Set by `make test-cluster`, where a cluster that does not start is a failure.
MUST_START = "ATTNLAB_CLUSTER_MUST_START"


def _cluster(accounting: bool) -> Iterator[SlurmCluster]:
    missing = missing_for_a_cluster(accounting)
    if missing is not None:
        pytest.skip(missing)
    with ExitStack() as started:
        try:
            cluster = started.enter_context(started_cluster(accounting))
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            if MUST_START in os.environ:
                raise
            # As in a container that keeps daemons from what they need.
            pytest.skip(f"the cluster did not start on this machine: {error}")
        yield cluster


@pytest.fixture(scope="session")
def _cluster_with_accounting() -> Iterator[SlurmCluster]:
    yield from _cluster(accounting=True)


@pytest.fixture(scope="session")
def _cluster_without_accounting() -> Iterator[SlurmCluster]:
    yield from _cluster(accounting=False)


@pytest.fixture
def cluster(_cluster_with_accounting: SlurmCluster) -> Iterator[SlurmCluster]:
    """Two idle nodes, whose controller keeps a database of the jobs."""
    _cluster_with_accounting.restore()
    yield _cluster_with_accounting
    _cluster_with_accounting.restore()


@pytest.fixture
def cluster_without_accounting(
    _cluster_without_accounting: SlurmCluster,
) -> Iterator[SlurmCluster]:
    """Two idle nodes, whose controller forgets jobs that have ended: `sacct` fails."""
    _cluster_without_accounting.restore()
    yield _cluster_without_accounting
    _cluster_without_accounting.restore()


@pytest.fixture
def folder(tmp_path: Path, empty_database: Path) -> Path:
    """A folder with MLflow's database."""
    (tmp_path / "runs").mkdir()
    shutil.copy(empty_database, tmp_path / "runs" / "mlflow.db")
    return tmp_path
