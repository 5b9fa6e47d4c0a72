"""Clusters for the tests of this folder: one with accounting, one without."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster, missing_for_a_cluster, started_cluster


def _cluster(accounting: bool) -> Iterator[SlurmCluster]:
    missing = missing_for_a_cluster(accounting)
    if missing is not None:
        pytest.skip(missing)
    with started_cluster(accounting) as cluster:
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
