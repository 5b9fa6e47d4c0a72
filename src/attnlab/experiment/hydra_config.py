"""The config as Hydra composes it, and the choice of each of its groups; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hydra
import yaml  # type: ignore[import-untyped]
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from attnlab.errors import ExperimentError
from attnlab.experiment.rewording import CONF, is_of_hydra, sentence
from attnlab.sweeps.settings import directions

# Which way a sweep's objectives are better depends on what training monitors.
OmegaConf.register_new_resolver("directions", directions, replace=True)


def compose_config(overrides: Sequence[str] = (), folder: Path = CONF, name: str = "config") -> DictConfig:
    """The composed config with its `hydra` node, not checked yet; raises ExperimentError where Hydra refuses it."""
    with hydra.initialize_config_dir(str(folder.resolve()), version_base="1.3"):
        return compose_in_command(overrides, name)


def compose_in_command(overrides: Sequence[str], name: str | None) -> DictConfig:
    """As `compose_config`, with the config folders of the running command."""
    try:
        return hydra.compose(name, list(overrides), return_hydra_config=True)
    except Exception as error:
        if not is_of_hydra(error):
            raise
        raise ExperimentError(sentence(error)) from error


def choices_of(config: DictConfig) -> dict[str, str]:
    """{group: choice}, as Hydra notes them; inside a job, whose config has no `hydra` node, those of the job."""
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
    """{group: what a reader is shown}: `pre_post`, or `pre_post, changed` where a value differs from the file's."""
    shown = {}
    for group, choice in choices.items():
        section: Any = config
        for key in group.split("/"):
            section = section.get(key) if isinstance(section, Mapping) else None
        shown[group] = f"{choice}, changed" if changed_values(group, choice, section) else choice
    return shown


def changed_values(group: str, choice: str, section: Any) -> dict[str, Any]:
    """{dotted key: value} of a section where it differs from the choice's file; empty where conf/ has no such file."""
    file = CONF / group / f"{choice}.yaml"
    return _different(yaml.safe_load(file.read_text(encoding="utf-8")), section) if file.is_file() else {}


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
