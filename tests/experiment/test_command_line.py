"""The words that repeat a run, as its record holds them."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import OmegaConf

from attnlab.experiment.hydra_job import command_line, python_path
from attnlab.project import COMMAND_VARIABLE, PIPELINES


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DVC_STAGE", raising=False)
    monkeypatch.delenv(COMMAND_VARIABLE, raising=False)
    monkeypatch.setattr(HydraConfig, "initialized", lambda: False)


def in_a_sweep(
    monkeypatch: pytest.MonkeyPatch,
    script: Path,
    config_name: str = "config",
    config_folder: str | None = None,
    of_hydra: tuple[str, ...] = (),
) -> None:
    """Let Hydra's job be a point of `train.py -m`, in a process that runs this script.

    The command was given in /home/me.
    """
    sources = [{"path": "conf", "schema": "file", "provider": "main"}]
    if config_folder is not None:
        sources.append({"path": config_folder, "schema": "file", "provider": "command-line"})
    node = {
        "mode": RunMode.MULTIRUN,
        "job": {"name": "train", "config_name": config_name},
        "overrides": {"task": ["seed=2"], "hydra": ["hydra.mode=MULTIRUN", *of_hydra]},
        "runtime": {"cwd": "/home/me", "config_sources": sources},
    }
    monkeypatch.setattr(HydraConfig, "initialized", lambda: True)
    monkeypatch.setattr(HydraConfig, "get", lambda: OmegaConf.create(node))
    monkeypatch.setattr("sys.argv", [str(script), "-m", "seed=1,2"])


def test_command_of_a_study_is_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(PIPELINES / "replicate.py"), "scan"])
    assert command_line() == ("python", "pipelines/replicate.py", "scan")
    monkeypatch.setenv(COMMAND_VARIABLE, "attnlab")
    assert command_line() == ("attnlab", "replicate", "scan")


def test_command_of_a_program_of_the_user_is_that_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, "attnlab")
    monkeypatch.setattr("sys.argv", ["mine.py", "--fast"])
    assert command_line() == ("python", "mine.py", "--fast")


def test_command_of_a_point_of_a_sweep_repeats_that_point(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_sweep(monkeypatch, PIPELINES / "train.py", config_name="mine")
    assert command_line() == ("python", "pipelines/train.py", "-cn", "mine", "seed=2")
    monkeypatch.setenv(COMMAND_VARIABLE, "attnlab")
    assert command_line() == ("attnlab", "train", "-cn", "mine", "seed=2")


@pytest.mark.parametrize(
    ("config_folder", "written"),
    [("/home/me/my_conf", "my_conf"), ("/srv/conf", "/srv/conf")],
)
def test_command_of_a_point_of_a_sweep_has_the_config_folder(
    config_folder: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_a_sweep(monkeypatch, PIPELINES / "train.py", config_folder=config_folder)
    assert command_line() == ("python", "pipelines/train.py", "--config-dir", written, "seed=2")


def test_command_of_a_point_of_a_sweep_has_the_search_path(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = "hydra.searchpath=[pkg://lab_extras.conf]"
    in_a_sweep(monkeypatch, PIPELINES / "train.py", of_hydra=(searched,))
    assert command_line() == ("python", "pipelines/train.py", searched, "seed=2")


def test_command_of_a_point_in_a_worker_of_submitit_is_the_pipeline(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    in_a_sweep(monkeypatch, tmp_path / "_submit.py")
    assert command_line() == ("python", "pipelines/train.py", "seed=2")


def test_python_path_is_that_of_the_process_where_a_named_class_lies_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "own_scores_on_a_path.py").write_text("class Mine: ...\n")
    monkeypatch.syspath_prepend(tmp_path / "folder")
    importlib.import_module("own_scores_on_a_path")
    monkeypatch.chdir(tmp_path)
    own = {"model": {"attention": {"_target_": "own_scores_on_a_path.Mine"}}}
    monkeypatch.setenv("PYTHONPATH", f"elsewhere{os.pathsep}folder")
    assert python_path(own) == f"elsewhere{os.pathsep}folder"
    # Ours, and classes of installed packages, are found without it.
    ours = {"_target_": "attnlab.model.attention.dot.DotScore"}
    assert python_path({"model": ours, "optimizer": {"_target_": "torch.optim.AdamW"}}) == ""
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert python_path(own) == ""
    monkeypatch.delenv("PYTHONPATH")
    assert python_path(own) == ""
