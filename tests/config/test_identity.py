"""An experiment's identity, and the error that a user reads."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pytest

from attnlab.config import identity
from attnlab.config.identity import config_digest, experiment_identity, source_digest
from attnlab.config.paths import Paths
from attnlab.errors import ExperimentError

SECTIONS = {"seed": 1, "model": {"encoder": {"cell": "gru", "layers": 1}, "attention": None}}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package in place of ours."""
    (tmp_path / "model" / "attention").mkdir(parents=True)
    (tmp_path / "batch.py").write_text("PAD = 0\n")
    (tmp_path / "model" / "encoder.py").write_text("a = 1\n")
    (tmp_path / "model" / "attention" / "dot.py").write_text("b = 2\n")
    (tmp_path / "other.py").write_text("c = 3\n")
    monkeypatch.setattr(identity, "PACKAGE_ROOT", tmp_path)
    return tmp_path


def test_the_order_of_keys_and_sources_is_irrelevant(package):
    turned = {"model": {"attention": None, "encoder": {"layers": 1, "cell": "gru"}}, "seed": 1}
    assert config_digest(SECTIONS) == config_digest(turned)
    one = experiment_identity(SECTIONS, "data", ["batch.py", "model"])
    assert one == experiment_identity(turned, "data", ["model", "batch.py"])
    assert re.fullmatch("[0-9a-f]{16}", one)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(seed=2),
        lambda c: c.update(seed="1"),
        lambda c: c.update(seed=1.0),
        lambda c: c.update(seed=True),
        lambda c: c["model"]["encoder"].update(cell="lstm"),
        lambda c: c["model"].update(attention={}),
        lambda c: c["model"].pop("attention"),
        lambda c: c.update(more=None),
    ],
)
def test_any_change_of_the_config_matters(change):
    changed = copy.deepcopy(SECTIONS)
    change(changed)
    assert config_digest(changed) != config_digest(SECTIONS)


def test_any_change_of_the_data_matters(package):
    assert experiment_identity(SECTIONS, "data", ["model"]) != experiment_identity(SECTIONS, "date", ["model"])


def test_any_change_of_a_named_source_matters_and_no_other(package):
    places = ["batch.py", "model"]
    before = source_digest(places)
    (package / "other.py").write_text("c = 4\n")
    (package / "model" / "notes.txt").write_text("no code")
    assert source_digest(places) == before

    seen = {before}
    dot = package / "model" / "attention" / "dot.py"
    dot.write_text("b = 3\n")
    seen.add(source_digest(places))
    dot.rename(dot.with_name("tod.py"))
    seen.add(source_digest(places))
    (package / "model" / "empty.py").write_text("")
    seen.add(source_digest(places))
    (package / "batch.py").write_text("PAD = 1\n")
    seen.add(source_digest(places))
    assert len(seen) == 5
    assert experiment_identity(SECTIONS, "data", places) != experiment_identity(SECTIONS, "data", ["model"])


def test_a_place_that_is_not_there_is_no_silent_nothing(package):
    """A misspelt or moved source would otherwise leave the identity without a word."""
    with pytest.raises((FileNotFoundError, ExperimentError, ValueError, AssertionError)):
        source_digest(["batch.py", "modle"])


def test_the_sources_that_the_stages_name_exist():
    from attnlab.experiment.experiment import PREPARE_SOURCES, TRAIN_SOURCES

    for place in (*PREPARE_SOURCES, *TRAIN_SOURCES):
        assert (identity.PACKAGE_ROOT / place).exists(), place


def test_the_error_crosses_process_borders_whole():
    error = pickle.loads(pickle.dumps(ExperimentError(["data.path: one", "seed: two"])))
    assert isinstance(error, ExperimentError)
    assert error.problems == ["data.path: one", "seed: two"]
    assert str(error) == "data.path: one\nseed: two"
    assert ExperimentError("alone").problems == ["alone"]


def test_runs_are_resolved_against_the_project_even_in_a_copy_of_it(tmp_path, monkeypatch):
    paths = Paths(runs="runs", data=None, model=None, ensemble=None, training=None, evaluation=None, report=None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    assert paths.runs_folder == (tmp_path / "runs").resolve()
    monkeypatch.setenv("DVC_ROOT", "/project")
    assert paths.runs_folder == Path("/project/runs")
