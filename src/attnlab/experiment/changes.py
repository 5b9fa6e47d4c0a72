"""What an experiment chose and set otherwise than the defaults, as one types it.

The defaults are read from the files of conf/ and of the user's own folders of configs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.config.choices import conf_file, differences, implied_choices, merged
from attnlab.config.params import as_text, leaves, value_at
from attnlab.errors import masked
from attnlab.experiment.override_text import as_typed
from attnlab.project import CONF

# Groups of which several choices go together, `callbacks=[lr_monitor,device_stats]`. Hydra does not
# record these choices, so they are found by their settings.
_LISTED = ("trainer", "callbacks", "loggers", "metrics", "pictures")
# They decide which other choices are the defaults, in this order.
_FIRST = ("experiment", "task", "debug", "data")
# Their files go over those of all other groups.
_OVER_ALL = ("task", "experiment", "debug")
# Where to write and whether to train, which says nothing of the experiment.
_BESIDE_THE_EXPERIMENT = ("hydra", "paths", "chain", "rerun", "dry_run")
_INPUTS = ("paths.ensemble",)


@dataclass(frozen=True)
class Change:
    """A choice or a setting that is not the default.

    place: the group, `model/attention`, or the path of the setting, `training.max_steps`.
    override: as one types it, `training.max_steps=20`.
    default: what it would be.
    """

    place: str
    override: str
    default: str


def changes(
    config: Mapping[str, Any], choices: Mapping[str, str], folders: Sequence[Path] = (CONF,)
) -> list[Change]:
    """What differs from the defaults: first choices, then settings.

    A setting differs from the file of its choice, or from the preset that was chosen.

    config: plain and resolved; environment variables may stay as written.
    choices: {group: choice}, as Hydra records them.
    folders: of configs, in the order in which they are searched.
    """
    searched = tuple(folders)
    recorded = {group: choice for group, choice in choices.items() if group not in _LISTED}
    written = _written(recorded, searched)
    listed = list(_listed_choices(config, written, searched))
    for group, name in listed:
        written = merged(written, conf_file(group, name, searched).values)
    return [
        *_changed_choices(recorded, searched),
        *_changed_lists(listed),
        *_changed_settings(written, config),
    ]


def _changed_choices(choices: Mapping[str, str], folders: tuple[Path, ...]) -> Iterator[Change]:
    """The choices that do not follow from the others."""
    others = sorted(set(choices) - set(_FIRST), key=lambda group: (group.count("/"), group))
    order = [group for group in (*_FIRST, *others) if group in choices]
    chosen: dict[str, str] = {}
    for group in order:
        if implied_choices(chosen, folders).get(group) != choices[group]:
            chosen[group] = choices[group]

    # A choice that came later may bring one that came before: a decoder chooses its readout.
    defaults = {}
    for group, choice in list(chosen.items()):
        del chosen[group]
        default = implied_choices(chosen, folders).get(group, "none")
        if choice != default:
            chosen[group] = choice
            defaults[group] = default
    for group, default in defaults.items():
        yield Change(group, f"{group}={chosen[group]}", default)


def _listed_choices(
    config: Mapping[str, Any], written: Mapping[str, Any], folders: tuple[Path, ...]
) -> Iterator[tuple[str, str]]:
    """(group, choice) of the groups of which several choices go together.

    written: without them.
    """
    for group in _LISTED:
        names = {path.stem for folder in folders for path in (folder / group).glob("*.yaml")}
        for name in sorted(names):
            nodes = value_at(conf_file(group, name, folders).values, group)
            is_there = nodes and _has_nodes_of(config.get(group) or {}, nodes)
            if is_there and not _has_nodes_of(written.get(group) or {}, nodes):
                yield group, name


def _changed_lists(listed: Sequence[tuple[str, str]]) -> Iterator[Change]:
    for group in _LISTED:
        names = [name for other, name in listed if other == group]
        if len(names) == 1:
            yield Change(group, f"{group}={names[0]}", "none")
        elif names:
            yield Change(group, f"{group}=[{','.join(names)}]", "none")


def _has_nodes_of(section: Mapping[str, Any], written: Mapping[str, Any]) -> bool:
    """Whether a section has all nodes of a file, by their classes, and its plain values."""
    for name, node in written.items():
        if name not in section:
            return False
        there = section[name]
        if not isinstance(node, Mapping):
            if there != node:
                return False
        elif not isinstance(there, Mapping) or there.get("_target_") != node.get("_target_"):
            return False
    return True


def _written(choices: Mapping[str, str], folders: tuple[Path, ...]) -> Any:
    """The config that the files of these choices compose."""
    written: Any = {}
    # A file goes over those of the groups inside it.
    inner_first = sorted(choices, key=lambda group: -group.count("/"))
    for group in inner_first:
        if group not in _OVER_ALL:
            written = merged(written, _values_of(group, choices[group], folders))
    written = merged(written, conf_file("", "config", folders).values)
    for group in _OVER_ALL:
        if group in choices:
            written = merged(written, _values_of(group, choices[group], folders))
    return written


def _values_of(group: str, choice: str, folders: tuple[Path, ...]) -> Any:
    """What a choice sets, in its place in the config.

    A group may be chosen for another place: `data/tokenizer@data.source_tokenizer`.
    """
    own_group, _, place = group.partition("@")
    values = conf_file(own_group, choice, folders).values
    if not place:
        return values
    node = value_at(values, own_group.replace("/", "."))
    for key in reversed(place.split(".")):
        node = {key: node}
    return node


def _changed_settings(written: Any, config: Mapping[str, Any]) -> Iterator[Change]:
    for key, value in _different(written, config):
        section = key.partition(".")[0]
        if section in _BESIDE_THE_EXPERIMENT and key not in _INPUTS:
            continue
        default = value_at(written, key)
        # What it means on this machine is resolved by now.
        if key == "hardware.precision" and default == "auto":
            continue
        is_new = not _has(written, key)
        override = f"{'+' if is_new else ''}{key}={_as_override(value)}"
        yield Change(key, masked(override), "not set" if is_new else masked(as_text(default)))


def _different(written: Any, config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in differences(written, config, config):
        if isinstance(value, Mapping) and value:
            yield from leaves(value, key)
        elif value != {} or value_at(written, key):
            yield key, value
    # `differences` does not compare values with an interpolation in them.
    for key, value in leaves(config):
        default = value_at(written, key)
        if "${oc." in str(value) and "${" not in str(default):
            yield key, value


def _has(config: Any, path: str) -> bool:
    above, _, name = path.rpartition(".")
    section = value_at(config, above) if above else config
    return isinstance(section, Mapping) and name in section


def _as_override(value: Any) -> str:
    """A value in Hydra's override grammar."""
    if isinstance(value, list):
        return f"[{','.join(map(_as_override, value))}]"
    if not isinstance(value, str):
        return as_text(value)
    return as_typed(value)
