"""The choice of each group of the config, and the values that differ from the choice's file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from attnlab.files import parse_yaml

CONF = Path(__file__).resolve().parents[3] / "conf"


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
    if not file.is_file():
        return {}
    return _different(parse_yaml(file.read_text(encoding="utf-8")), section)


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
