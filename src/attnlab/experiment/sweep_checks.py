"""Checks of a multirun's settings of sweeper and launcher."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from attnlab.errors import ExperimentError, holds_password, masked_values, show
from attnlab.runs.sweep_points import key_of
from attnlab.runs.sweep_settings import asks_for_gpus, job_processes
from attnlab.tasks.task import Experiment


def check_points_are_known(config: DictConfig, sweeper: Mapping[str, Any]) -> None:
    """Raise ExperimentError for settings that need all points to be known before the first starts.

    sweeper: its node as written. That of a grid or of a list has a `part`.
    """
    if "part" in sweeper:
        return
    shard = OmegaConf.select(config, "sweep.shard")
    if shard is not None:
        chosen = config.hydra.runtime.choices["hydra/sweeper"]
        raise ExperimentError(
            f"sweep.shard must be null with hydra/sweeper={chosen}, got {show(shard)}; "
            "leave one of them out"
        )
    if config.hydra.launcher.get("wait") is False:
        raise ExperimentError(
            "launcher.wait must be true where a sweeper chooses points by the results of "
            "others, got false; sweep=grid and sweep=listed take it"
        )


def check_settings_have_effect(config: DictConfig, given: Mapping[str, Sequence[str]]) -> None:
    """Raise ExperimentError for settings of a section that Hydra's own node goes over.

    So does `launcher.workers=4` beside `hydra/launcher=joblib` or `hydra.launcher.n_jobs=2`.

    given: the overrides of the command, of Hydra (`hydra`) and of the experiment (`task`).
    """
    problems = []
    for section, node in (("launcher", "launcher"), ("sweep", "sweeper")):
        starts = (f"hydra/{node}=", f"hydra/{node}/", f"hydra.{node}.")
        of_hydra = [text for text in given["hydra"] if text.lstrip("+~").startswith(starts)]
        if not of_hydra:
            continue
        written = OmegaConf.to_yaml(config.hydra[node], resolve=False)
        for override in given["task"]:
            key = key_of(override)
            is_used = re.search(rf"\b{re.escape(key)}\b", written) or key == "sweep.objectives"
            if not key.startswith(f"{section}.") or is_used:
                continue
            problems.append(
                f"{key} has no effect beside {' '.join(masked_values(of_hydra))}, which decides; "
                f"leave out one of them, got {override}"
            )
    if problems:
        raise ExperimentError(problems)


def check_search(sweeper: Mapping[str, Any], overrides: Sequence[Override]) -> None:
    """Raise ExperimentError for ranges and settings of the sweeper that no search can use.

    sweeper: its node as written. What refers to the section `sweep` is checked there.
    """
    from attnlab.experiment.search_overrides import search_space  # imports Optuna

    space = search_space(overrides)
    if not space.varied:
        raise ExperimentError(
            "sweep=optuna needs a setting to choose, such as "
            "'training.optimizer.lr=tag(log,interval(1e-4,1e-2))'"
        )
    for name in ("n_trials", "n_jobs", "seeds"):
        value = sweeper[name]
        if not _is_reference(value) and (not isinstance(value, int) or value < 1):
            raise ExperimentError(
                f"hydra.sweeper.{name} must be a whole number above 0, got {show(value)}"
            )
    waits = sweeper.get("wait_for_batch", True)
    if not _is_reference(waits) and not isinstance(waits, bool):
        raise ExperimentError(
            f"hydra.sweeper.wait_for_batch must be true or false, got {show(waits)}"
        )
    if holds_password(sweeper["storage"]):
        raise ExperimentError(
            "hydra.sweeper.storage holds a password, which would be written down with the config; "
            "write ${oc.env:NAME} for it"
        )


def check_study(config: DictConfig) -> None:
    """Raise ExperimentError for the name of a study that is kept nowhere."""
    study = OmegaConf.select(config, "sweep.study")
    if study is not None and config.hydra.sweeper.storage is None:
        raise ExperimentError(
            "sweep.study must be null without sweep.storage, which keeps trials under that name; "
            f"got {show(study)}"
        )


def check_launcher_of_search(hydra: DictConfig) -> None:
    """Raise ExperimentError where points shall start one by one on a launcher that may not bear it.

    hydra: the node of the composed config.
    """
    waits = hydra.sweeper.get("wait_for_batch") is not False
    if waits or job_processes(hydra.launcher, 1).kind != "other":
        return
    chosen = hydra.runtime.choices["hydra/launcher"]
    raise ExperimentError(
        f"sweep.wait_for_batch must be true with hydra/launcher={chosen}, got false; "
        "launcher=joblib, slurm and ray start points one by one"
    )


def warn_of_jobs_without_gpus(launcher: DictConfig, experiments: Sequence[Experiment]) -> None:
    """Warn of trainings on a GPU whose cluster is asked for none.

    A partition may give them all the same.
    """
    on_gpus = any(experiment.hardware.accelerator == "gpu" for experiment in experiments)
    if on_gpus and not asks_for_gpus(launcher):
        print(
            "warning: hardware.accelerator is gpu, but the jobs ask the cluster for no GPU; set "
            "launcher.gpus=1, or on Slurm launcher.gres=gpu:1",
            file=sys.stderr,
        )


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and "${" in value
