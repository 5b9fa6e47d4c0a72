"""The job that Hydra runs: its output folder, its overrides, and the command that repeats it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import OmegaConf

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

    mode, job = HydraConfig.get().mode, HydraConfig.get().job
    if mode == RunMode.MULTIRUN:  # this point alone
        given = overrides()
        if job.config_name != "config":
            given = ["-cn", str(job.config_name), *given]
    # A worker of Slurm is a script of submitit's; Hydra's job still has our script's name.
    name = script.stem if is_pipeline else job.name
    return *pipeline_command(name).split(), *given
