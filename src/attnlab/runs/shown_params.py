"""Params of a run in MLflow: what one types to get it.

These are the choice of each group by the group's last word, `padding: pre_post`, and the settings
that differ from the files of the choices, `training.max_steps: 300`. In a sweep, they are also what
the sweep varies, so that its column has a value in each run. The whole config is among the run's
artifacts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attnlab.config.choices import (
    changed_settings,
    choice_of,
    default_choices,
    place_of_group,
    written_by,
)
from attnlab.config.params import (
    LONGEST_VALUE,
    accepted_name,
    as_text,
    choice_name,
    dotted_params,
    short_params,
    value_at,
)
from attnlab.errors import masked
from attnlab.project import CONF

# Groups whose choices are params, wherever their section is in the config.
_GROUPS = (
    "fault", "task", "data", "padding", "hardware", "search", "model/attention", "model/projection",
    "model/normaliser", "model/scope", "model/history", "model/heads", "model/gate",
    "model/encoder", "model/encoder@model.encoder.first", "model/encoder@model.encoder.then",
    "model/encoder@model.encoder.features", "model/encoder@model.encoder.source",
    "model/bridge", "model/decoder", "model/readout", "model/output",
    "model/input_feeding", "model/initialisation", "training/teacher_forcing",
    "training/attention_schedule", "training/optimizer", "training/schedule", "data/tokenizer",
)  # fmt: skip
# Sections that decide no result.
_BESIDE_THE_EXPERIMENT = (
    "tracking", "paths", "sweep", "launcher", "loggers", "chain", "rerun", "dry_run",
    "save_every_minutes",
)  # fmt: skip
# Choices of the data that leave the corpus open; the corpus has a name of its own.
_ANY_DATA = ("hub", "labelled")


def shown_params(
    config: Mapping[str, Any],
    folders: tuple[Path, ...] = (CONF,),
    varied: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """The choices and the settings that differ from their files. Sections may be missing.

    folders: of configs, in the order in which they are searched.
    varied: {setting or group: its value as text} of what a sweep varies.
    """
    choices = dict(_choices(config, folders))
    params = {_param_of(group): choice for group, choice in choices.items()}
    short = short_params(config)
    if choices.get("data") in (None, *_ANY_DATA) and "data" in short:
        params["data"] = short["data"]
    if "seed" in config:
        params["seed"] = str(config["seed"])
    return {**params, **_varied(config, varied, params), **_changed(config, choices, folders)}


def _param_of(group: str) -> str:
    """The param of a group: its last word, or the place that it is chosen for."""
    return group.rpartition("@")[2].rpartition("/")[2]


def _choices(config: Mapping[str, Any], folders: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """(group, choice) of each group whose section the config has.

    A section with a class of the user's is named by the class.
    """
    task = choice_of("task", config.get("task"), folders=folders) or "translation"
    defaults = default_choices(task, folders=folders)
    for group in _GROUPS:
        place = place_of_group(group.rpartition("@")[2])
        section, _, name = place.rpartition(".")
        above = value_at(config, section) if section else config
        if not isinstance(above, Mapping) or name not in above:
            continue
        node, default = above[name], defaults.get(group, "none")
        # null is a choice of some groups, as the initialisation of torch.
        is_none = node is None and default == "none"
        own_group = group.partition("@")[0]
        choice = "none" if is_none else choice_of(own_group, node, default, folders)
        shown = choice or choice_name(node)
        if shown is not None:
            yield group, shown


def _changed(
    config: Mapping[str, Any], choices: Mapping[str, str], folders: tuple[Path, ...]
) -> dict[str, str]:
    """The settings that differ from the files of these choices."""
    task = choices.get("task", "translation")
    written = written_by({**default_choices(task, folders=folders), **choices}, folders)
    changed = {}
    for key, value in changed_settings(written, config):
        section, _, _ = key.partition(".")
        is_of_a_class = key.endswith(("_target_", "_partial_"))
        if section not in _BESIDE_THE_EXPERIMENT and not is_of_a_class:
            changed[key] = value
    return dotted_params(changed)


def _varied(
    config: Mapping[str, Any], varied: Mapping[str, str], known: Mapping[str, str]
) -> dict[str, str]:
    """What a sweep varies, also where it is the default; but for the groups that are params.

    known: the params of groups.
    """
    params = {}
    for key, text in varied.items():
        section = key.replace("/", ".").partition(".")[0]
        # A config without a fault says nothing of the group.
        is_param = key in (*_GROUPS, "seed") and (key != "fault" or "fault" in known)
        if is_param or section in ("hydra", *_BESIDE_THE_EXPERIMENT):
            continue
        value = value_at(config, key)
        # A group is known by what was typed: its section has many values.
        shown = text if value is None or isinstance(value, Mapping) else as_text(value)
        params[accepted_name(key)] = masked(shown)[:LONGEST_VALUE]
    return params
