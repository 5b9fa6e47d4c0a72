"""A sweep against MLflow as a server over PostgreSQL, both really started."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from entry_points import ANY_ATTENTION, PIPELINES, the_sweep
from mlflow import MlflowClient
from servers import free_port, mlflow_server, wait_for_port

from attnlab.training.spool import SPOOL_NAME, MetricSpool

pytestmark = pytest.mark.slow


def program(name: str) -> str | None:
    """Of PostgreSQL; Debian keeps those of the server out of PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: float(place.parent.name))
    return shutil.which(name, path=os.pathsep.join([*map(str, reversed(places)), os.environ["PATH"]]))


@pytest.fixture
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a fresh PostgreSQL."""
    initdb, postgres = program("initdb"), program("postgres")
    if initdb is None or postgres is None:
        pytest.skip("PostgreSQL is not installed")
    # As root it refuses to run, so it runs as the user that its package made.
    user = "postgres" if os.geteuid() == 0 else None
    folder = tmp_path_factory.mktemp("postgres")
    if user is not None:
        for place in (folder, *folder.parents[: len(folder.parents) - 2]):
            place.chmod(place.stat().st_mode | 0o055)  # pytest's own are closed to others
        shutil.chown(folder, user)
    cluster, log, port = folder / "cluster", folder.with_suffix(".log"), free_port()
    made = [initdb, "--pgdata", str(cluster), "--auth", "trust", "--username", "attnlab", "--encoding", "UTF8"]
    subprocess.run([*made, "--no-sync"], user=user, cwd=folder, check=True, capture_output=True)
    serve = [postgres, "-D", str(cluster), "-k", str(folder), "-p", str(port), "-c", "listen_addresses=127.0.0.1"]
    with log.open("wb") as out:
        process = subprocess.Popen([*serve, "-c", "fsync=off"], user=user, cwd=folder, stdout=out, stderr=out)
        try:
            wait_for_port(port, process, log)
            yield f"postgresql+psycopg2://attnlab@127.0.0.1:{port}/postgres"
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture
def server(database: str, tmp_path: Path) -> Iterator[str]:
    """The address of an MLflow server over it."""
    artifacts = ("--artifacts-destination", str(tmp_path / "artifacts"))
    with mlflow_server(tmp_path, database, *artifacts, "--workers", "2") as address:
        yield address


def test_two_workers_write_a_sweep_through_a_server_and_nothing_is_missing(
    server: str, tmp_path: Path, warm_python: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    command = [
        warm_python, PIPELINES / "train.py", "-m", *ANY_ATTENTION, "launcher=joblib", "launcher.workers=2",
        "model/attention=dot,general", "seed=1,2", "tracking.heat_map_sentences=1", f"tracking.uri={server}",
    ]  # fmt: skip
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr

    sweep = the_sweep(folder)
    client = MlflowClient(tracking_uri=server)
    experiment = client.get_experiment_by_name("attnlab").experiment_id
    found = {run.info.run_id: run for run in client.search_runs([experiment])}
    parent = found.pop(sweep.read().run_id)
    assert parent.info.status == "FINISHED"
    assert set(found) == {job.run_id for job in sweep.jobs()}
    assert len(found) == 4
    for job in sweep.jobs():
        run = found[job.run_id]
        assert run.info.status == "FINISHED"
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert {"attention", "seed", "model.encoder.hidden_size"} <= set(run.data.params)
        spooled, _ = MetricSpool(folder / "runs" / "points" / str(job.identity) / SPOOL_NAME).read()
        expected: dict[str, list[tuple[int, float]]] = {}
        for line in spooled:
            for name, value in line.metrics.items():
                expected.setdefault(name, []).append((line.step, value))
        for name, points in expected.items():
            stored = client.get_metric_history(run.info.run_id, name)
            assert sorted((point.step, point.value) for point in stored) == sorted(points), name
        artifacts = {info.path for info in client.list_artifacts(run.info.run_id)}
        assert {"attention", "evaluation"} <= artifacts
        assert "evaluation/metrics.json" in {info.path for info in client.list_artifacts(run.info.run_id, "evaluation")}
        assert run.outputs.model_outputs
