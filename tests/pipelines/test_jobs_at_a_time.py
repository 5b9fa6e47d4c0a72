"""How many jobs of a sweep share the machine, as a launcher's config says it."""

from __future__ import annotations

import pytest
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import OmegaConf

from attnlab.experiment.experiment import jobs_at_a_time


def with_node(monkeypatch, mode, launcher):
    monkeypatch.setattr(HydraConfig, "initialized", lambda: True)
    monkeypatch.setattr(HydraConfig, "get", lambda: OmegaConf.create({"mode": mode, "launcher": launcher}))
    monkeypatch.setattr("attnlab.training.hardware.cores", lambda: 8)


@pytest.mark.parametrize(
    ("launcher", "jobs"), [({}, 1), ({"n_jobs": None}, 1), ({"n_jobs": 3}, 3), ({"n_jobs": -1}, 8), ({"n_jobs": -3}, 6)]
)
def test_a_sweeps_jobs_are_its_launchers(launcher, jobs, monkeypatch):
    with_node(monkeypatch, RunMode.MULTIRUN, launcher)
    assert jobs_at_a_time() == jobs


def test_a_plain_run_is_one_job_whatever_the_launcher(monkeypatch):
    with_node(monkeypatch, RunMode.RUN, {"n_jobs": 3})
    assert jobs_at_a_time() == 1
