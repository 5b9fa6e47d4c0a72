"""The config as Hydra composes it, and the choices of its groups.

This module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf, read_write

from attnlab.config.choices import conf_file, place_of_group
from attnlab.config.params import value_at
from attnlab.errors import ExperimentError
from attnlab.experiment.config_sources import config_folders
from attnlab.experiment.hydra_errors import hydra_error_sentence, is_of_hydra
from attnlab.experiment.override_checks import check_overrides
from attnlab.project import CONF
from attnlab.runs.sweep_points import key_of
from attnlab.runs.sweep_settings import directions, workers

# Which way a sweep's objectives are better depends on what training monitors.
OmegaConf.register_new_resolver("directions", directions, replace=True)
# A sweeper that chooses as it goes asks for as many points as the launcher runs at a time.
OmegaConf.register_new_resolver("workers", workers, replace=True)


def compose_config(
    overrides: Sequence[str] = (), folder: Path = CONF, name: str = "config"
) -> DictConfig:
    """The composed config with its `hydra` node, not checked yet.

    Raises ExperimentError where Hydra refuses it.
    """
    with hydra.initialize_config_dir(str(folder.resolve()), version_base="1.3"):
        return compose_in_command(overrides, name)


def compose_in_command(overrides: Sequence[str], name: str | None) -> DictConfig:
    """As `compose_config`, with the config folders of the running command."""
    check_overrides(overrides)
    try:
        return hydra.compose(name, list(overrides), return_hydra_config=True)
    except Exception as error:
        if not is_of_hydra(error):
            raise
        raise ExperimentError(hydra_error_sentence(error, overrides)) from error


def choose_direction(config: DictConfig) -> None:
    """Let Optuna's sweeper look for better objectives where `hydra/sweeper=optuna` chose it.

    By itself it minimises, and a BLEU is better when it is higher. A direction of the command line
    stays.
    """
    node = config.hydra
    # Unresolved: an override such as hydra.sweep.subdir=${hydra.job.num} has no value yet.
    overrides: Any = OmegaConf.to_container(node.overrides.hydra, resolve=False)
    chosen = [key_of(text) for text in overrides]
    monitor = OmegaConf.select(config, "training.monitor")
    is_chosen = "hydra.sweeper.direction" in chosen
    if "direction" not in node.sweeper or is_chosen or not isinstance(monitor, str):
        return
    objectives = OmegaConf.select(config, "sweep.objectives", default=["quality"])
    with read_write(node):
        node.sweeper.direction = directions(objectives, monitor)


def choices_of(config: DictConfig) -> dict[str, str]:
    """{group: choice}, as Hydra records them.

    Inside a job, whose config has no `hydra` node, these are the choices of the job.
    """
    node = config.get("hydra") or (HydraConfig.get() if HydraConfig.initialized() else None)
    if node is None:
        return {}
    chosen: Any = OmegaConf.to_container(node.runtime.choices, resolve=False)
    return {
        str(group): str(choice)
        for group, choice in chosen.items()
        if choice is not None and not str(group).startswith("hydra/")
    }


def shown_choices(choices: Mapping[str, str], config: Mapping[str, Any]) -> dict[str, str]:
    """{group: what a reader is shown}.

    That is the choice, `pre_post`, or `pre_post, changed` where a value differs from the file's.
    """
    shown = {}
    for group, choice in choices.items():
        changed = changed_values(group, choice, value_at(config, place_of_group(group)))
        shown[group] = f"{choice}, changed" if changed else choice
    return shown


def changed_values(group: str, choice: str, section: Any) -> dict[str, Any]:
    """{dotted key: value} of the values in a section that differ from the choice's file.

    Empty where conf/ has no such file.
    """
    file = conf_file(group, choice, config_folders())
    written = value_at(file.values, place_of_group(group))
    return _different(written, section)


def _different(written: Any, section: Any, prefix: str = "") -> dict[str, Any]:
    if not (isinstance(written, Mapping) and isinstance(section, Mapping)):
        return {}
    different: dict[str, Any] = {}
    for key in written.keys() & section.keys():
        there, here = written[key], section[key]
        if isinstance(there, Mapping):
            different |= _different(there, here, f"{prefix}{key}.")
        elif there != here and "${" not in str(there):
            different[f"{prefix}{key}"] = here
    return dict(sorted(different.items()))


def check_choices_are_found_once(config: DictConfig) -> None:
    """Raise ExperimentError for a choice that two folders have, of which Hydra takes the first.

    The other one, of the same name and another content, would be left out without a word.
    """
    problems = []
    folders = config_folders(config)
    for group, choice in choices_of(config).items():
        file = f"{group.partition('@')[0]}/{choice}.yaml"
        found = [folder / file for folder in folders if (folder / file).is_file()]
        for other in found[1:]:
            if other.read_bytes() != found[0].read_bytes():
                problems.append(
                    f"{group}={choice} is in {found[0]} and in {other}, and Hydra takes the first; "
                    "give yours a name of its own"
                )
    if problems:
        raise ExperimentError(problems)
