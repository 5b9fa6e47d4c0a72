"""The job that Hydra runs: its output folder, its overrides, and the command that repeats it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from attnlab.config.identity import foreign_modules
from attnlab.project import PIPELINES, pipeline_command


def output_folder() -> Path:
    """Hydra's output folder of this job."""
    return Path(HydraConfig.get().runtime.output_dir)


def overrides() -> list[str]:
    """The overrides of this job as the command line gave them; empty outside of Hydra.

    `${oc.env:NAME}` stays as it is.
    """
    if not HydraConfig.initialized():
        return []
    return OmegaConf.to_container(HydraConfig.get().overrides.task, resolve=False)  # type: ignore[return-value]


def command_line() -> tuple[str, ...]:
    """The words of a command that repeats this job.

    Stages of DVC read what it composed, so for them the command is `dvc repro`.
    """
    if "DVC_STAGE" in os.environ:
        return "dvc", "repro"
    script, given = Path(sys.argv[0]).resolve(), sys.argv[1:]
    is_pipeline = script.parent == PIPELINES
    if not HydraConfig.initialized():
        if not is_pipeline:  # a program of the user's
            return "python", *sys.argv
        return *pipeline_command(script.stem).split(), *given

    node: Any = HydraConfig.get()
    if node.mode == RunMode.MULTIRUN:  # this point alone
        given = [*config_options(node), *overrides()]
    # A worker of Slurm is a script of submitit's; Hydra's job still has our script's name.
    name = script.stem if is_pipeline else node.job.name
    return *pipeline_command(name).split(), *given


def python_path(config: Mapping[str, Any]) -> str:
    """The PYTHONPATH of this process where a class that the config names lies in it; else ""."""
    given = os.environ.get("PYTHONPATH", "")
    folders = [Path(entry).resolve() for entry in given.split(os.pathsep) if entry]
    for module in foreign_modules(config):
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is None:
            continue
        path = Path(file).resolve()
        if any(path.is_relative_to(folder) for folder in folders):
            return given
    return ""


def config_options(node: DictConfig) -> list[str]:
    """The arguments that say where Hydra finds the configs, as a command must repeat them.

    These are `--config-dir`, `-cn` and `hydra.searchpath`; the overrides of a job have none of
    them.

    node: Hydra's own, `config.hydra`.
    """
    options = []
    for source in node.runtime.config_sources:
        if source.provider == "command-line":  # of --config-dir, which Hydra makes absolute
            options += ["--config-dir", _as_in_command(Path(source.path), Path(node.runtime.cwd))]
    if node.job.config_name not in (None, "config"):
        options += ["-cn", str(node.job.config_name)]

    # Unresolved: `${oc.env:NAME}` stays as it is.
    of_hydra: Any = OmegaConf.to_container(node.overrides.hydra, resolve=False)
    options += [text for text in of_hydra if text.startswith("hydra.searchpath=")]
    return options


def _as_in_command(path: Path, working_folder: Path) -> str:
    """The path as the user most likely wrote it: relative where it is in the working folder."""
    if path.is_relative_to(working_folder):
        return str(path.relative_to(working_folder))
    return str(path)
