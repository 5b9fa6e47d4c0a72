"""What is said before a job goes to Ray; sweeps on a cluster are in tests/cluster/test_ray.py."""

from __future__ import annotations

import socket
import sys
from types import SimpleNamespace

import pytest

from attnlab.errors import ExperimentError
from attnlab.runs.ray_jobs import RayTasks


def test_missing_ray_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(ExperimentError, match=r"Ray is not installed; pip install 'attnlab\[ray\]'"),
        RayTasks(None, {}, retries=0),
    ):
        pass


@pytest.mark.parametrize("form", ["{}", "ray://{}"])
def test_address_that_nobody_listens_at_is_a_sentence(form, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with (
        pytest.raises(ExperimentError, match=r"launcher\.address: no cluster of Ray answers"),
        RayTasks(form.format(address), {}, retries=0),
    ):
        pass


def test_jobs_get_the_variables_that_they_need_and_not_those_of_the_leaders_machine(monkeypatch):
    received: dict[str, object] = {}
    ray = SimpleNamespace(init=lambda **given: received.update(given), shutdown=lambda: None)
    monkeypatch.setitem(sys.modules, "ray", ray)
    for name in ("ATTNLAB_SWEEP", "ATTNLAB_SWEEP_LEADER", "MLFLOW_TRACKING_URI", "HOME"):
        monkeypatch.setenv(name, "x")
    with RayTasks(None, {}, retries=0):
        pass
    variables = received["runtime_env"]["env_vars"]  # type: ignore[index]
    assert {"ATTNLAB_SWEEP", "MLFLOW_TRACKING_URI"} <= variables.keys()
    assert not {"ATTNLAB_SWEEP_LEADER", "HOME"} & variables.keys()
    assert received["log_to_driver"] is False
