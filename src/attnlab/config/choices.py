"""The choices of conf/: which one a section of a config is, and which ones are the defaults.

They are read from the files of conf/ and from a config alone, without Hydra: a model folder, or a
run in the tracker, knows its config but not how it was composed.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

from attnlab.config.params import leaves, value_at
from attnlab.project import CONF

# Their files go over those of all other groups.
_OVER_ALL = ("fault", "task", "experiment", "debug")
# The sections of groups whose files are for the whole config.
_PLACES = {"fault": "model.fault"}
# `${.dropout}`, or, with a value for where there is no such place, `${oc.select:model.dropout,0.0}`
_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)(?:,([^{}]*))?\}")


class ConfFile(NamedTuple):
    """A file of conf/, with the files of its own group that it builds on.

    values: by their place in the whole config.
    defaults: {group: choice} of the groups inside it.
    overrides: {group: choice} of other groups.
    bases: how many files it builds on.
    """

    values: Mapping[str, Any]
    defaults: Mapping[str, str]
    overrides: Mapping[str, str]
    bases: int = 0


def place_of_group(group: str) -> str:
    """Where the section of a group stands in a config: `model.attention` for `model/attention`."""
    return _PLACES.get(group, group.replace("/", "."))


@functools.cache
def conf_file(group: str, choice: str, folders: tuple[Path, ...] = (CONF,)) -> ConfFile:
    """The file of a choice; empty where there is none.

    choice: `dot`, or `lesson/dot` for a file in a folder of the group.
    folders: of configs, in the order in which they are searched.
    """
    paths = [folder / group / f"{choice}.yaml" for folder in folders]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return ConfFile({}, {}, {})
    text = path.read_text(encoding="utf-8")
    content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}

    package = re.search(r"^# @package (\S+)$", text, re.MULTILINE)
    place = group.replace("/", ".") if package is None else package[1].replace("_global_", "")
    found = ConfFile({}, {}, {})
    for entry in content.pop("defaults", []):
        if isinstance(entry, Mapping):
            found = _with_choices(found, group, place, entry)
        elif entry != "_self_":
            base = conf_file(group, entry, folders)
            found = ConfFile(
                values=merged(found.values, base.values),
                defaults={**found.defaults, **base.defaults},
                overrides={**found.overrides, **base.overrides},
                bases=found.bases + 1 + base.bases,
            )

    for key in reversed(place.split(".") if place else []):
        content = {key: content}
    return found._replace(values=merged(found.values, content))


def _with_choices(file: ConfFile, group: str, package: str, entry: Mapping[str, Any]) -> ConfFile:
    """The file with one more entry of its defaults list.

    An entry is `{"encoder": "gru"}` or `{"override /model/encoder": "lstm"}`.

    package: the file's own place in the config, empty for the top.
    """
    defaults, overrides = dict(file.defaults), dict(file.overrides)
    for key, choice in entry.items():
        name = key.removeprefix("override ")
        is_override = key != name
        # Nothing, or several choices together
        if not isinstance(choice, str):
            continue

        # `/model/encoder` is a whole name, `encoder` that of a group inside this one.
        is_whole_name = name.startswith("/")
        if is_whole_name:
            name = name.removeprefix("/")
        elif group:
            name = f"{group}/{name}"
        # For another place: `tokenizer@source_tokenizer` is `data/tokenizer@data.source_tokenizer`.
        if package:
            name = name.replace("@", f"@{package}.")

        if is_override:
            overrides[name] = choice
        else:
            defaults[name] = choice
    return file._replace(defaults=defaults, overrides=overrides)


def default_choices(
    task: str,
    preset: str | None = None,
    data: str | None = None,
    folders: tuple[Path, ...] = (CONF,),
) -> dict[str, str]:
    """{group: choice} of a config that chooses no more than its task, a preset and its data."""
    chosen = {"task": task, "experiment": preset, "data": data}
    return implied_choices({group: choice for group, choice in chosen.items() if choice}, folders)


def implied_choices(
    chosen: Mapping[str, str], folders: tuple[Path, ...] = (CONF,)
) -> dict[str, str]:
    """{group: choice} of a config for which no more is chosen than this.

    folders: of configs, in the order in which they are searched.
    """
    defaults = conf_file("", "config", folders).defaults
    preset = conf_file("experiment", chosen.get("experiment", ""), folders).overrides
    debug = conf_file("debug", chosen.get("debug", ""), folders).overrides
    overrides = {**preset, **debug, **chosen}
    task = overrides.get("task", defaults["task"])
    overrides = {**conf_file("task", task, folders).overrides, **overrides}

    implied: dict[str, str] = {}
    todo = dict(defaults)
    while todo:
        group, choice = todo.popitem()
        implied[group] = overrides.get(group, choice)
        file = conf_file(group, implied[group], folders)
        overrides = {**file.overrides, **overrides}
        todo |= file.defaults
    # A group for another place has no default, `tokenizer@target_tokenizer: null`.
    for_another_place = {group for group in overrides if "@" in group}
    return {
        group: overrides.get(group, implied.get(group, "none"))
        for group in [*implied, *sorted(for_another_place - implied.keys())]
    }


def written_by(choices: Mapping[str, str], folders: tuple[Path, ...] = (CONF,)) -> Any:
    """The config that the files of these choices compose.

    choices: {group: choice}; a group may be chosen for another place,
        `data/tokenizer@data.source_tokenizer`.
    """
    written: Any = {}
    # A file goes over those of the groups inside it, and of those for a place inside it.
    inner_first = sorted(choices, key=_depth, reverse=True)
    for group in inner_first:
        if group not in _OVER_ALL:
            written = merged(written, _values_of(group, choices[group], folders))
    written = merged(written, conf_file("", "config", folders).values)
    for group in _OVER_ALL:
        if group in choices:
            written = merged(written, _values_of(group, choices[group], folders))
    return written


def _depth(group: str) -> tuple[int, int]:
    """How deep a group is, and then the place that it is chosen for."""
    _, _, place = group.partition("@")
    return group.count("/"), place.count(".")


def _values_of(group: str, choice: str, folders: tuple[Path, ...]) -> Any:
    """What a choice sets, in its place in the config."""
    own_group, _, place = group.partition("@")
    values = conf_file(own_group, choice, folders).values
    if not place:
        return values
    node = value_at(values, own_group.replace("/", "."))
    for key in reversed(place.split(".")):
        node = {key: node}
    return node


def changed_settings(written: Any, config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path, value) of each single setting of a config that differs from what is written."""
    for key, value in differences(written, config, config):
        if isinstance(value, Mapping) and value:
            yield from leaves(value, key)
        elif value != {} or value_at(written, key):
            yield key, value


def listed_choices(
    group: str, section: Any, written: Any, folders: tuple[Path, ...] = (CONF,)
) -> Iterator[str]:
    """The choices of a group of which several go together, found by their nodes.

    written: the section without them.
    """
    for name in _names_in(group, folders):
        nodes = value_at(conf_file(group, name, folders).values, group)
        is_there = nodes and _has_nodes_of(section or {}, nodes)
        if is_there and not _has_nodes_of(written or {}, nodes):
            yield name


@functools.cache
def _names_in(group: str, folders: tuple[Path, ...]) -> tuple[str, ...]:
    """The choices of a group, sorted; listed once a process, as their files are read once."""
    names = {path.stem for folder in folders for path in (folder / group).glob("*.yaml")}
    return tuple(sorted(names))


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


def choice_of(
    group: str, node: Any, likely: str | None = None, folders: tuple[Path, ...] = (CONF,)
) -> str | None:
    """The choice of a group whose file is closest to a section.

    None if no file names the section's class.

    likely: the choice to prefer if others are equally close.
    folders: of configs, in the order in which they are searched.
    """
    place = place_of_group(group)
    names = list(_names_in(group, folders))
    if likely in names:
        names.remove(likely)
        names.insert(0, likely)

    closest = None
    fewest_differences = math.inf
    for name in names:
        written = value_at(conf_file(group, name, folders).values, place)
        if _class_of(written) != _class_of(node):
            continue
        count = len(list(differences(written, node)))
        # The first one of several that are equally close
        if count < fewest_differences:
            closest, fewest_differences = name, count
        if count == 0:
            break
    return closest


def differences(
    written: Any, node: Any, whole: Any = None, prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of each setting of a section that differs from a file, or is not in it.

    A setting that the section lacks does not count: the file may have got it later.

    whole: the config, in which `${model.encoder.dropout}` is looked up; None takes any value for
        such a reference.
    """
    if not (isinstance(written, Mapping) and isinstance(node, Mapping)):
        return
    for key, value in node.items():
        if key not in written:
            if value is not None:
                yield f"{prefix}{key}", value
        elif isinstance(written[key], Mapping) and isinstance(value, Mapping):
            yield from differences(written[key], value, whole, f"{prefix}{key}.")
        elif not _is_same(written[key], value, node, whole):
            yield f"{prefix}{key}", value


def _is_same(written: Any, value: Any, node: Mapping[str, Any], whole: Any) -> bool:
    """Whether a setting has the value that is written in a file.

    node: the section that has the setting, in which `${.dropout}` is looked up.
    """
    reference = _REFERENCE.fullmatch(written) if isinstance(written, str) else None
    if reference is not None and whole is not None:
        meant = _referenced_value(reference, node, whole)
        return value == written or "${" in str(meant) or meant == value
    # What any other interpolation stands for is not known here.
    if "${" in str(written) or "${" in str(value):
        return True
    try:  # YAML takes 1e-3 for text
        return written == value or float(written) == float(value)
    except (TypeError, ValueError):
        return False


def _referenced_value(reference: re.Match[str], node: Mapping[str, Any], whole: Any) -> Any:
    """The value that `${.dropout}` or `${oc.select:model.dropout,0.0}` stands for."""
    name, default = reference.groups()
    value = node.get(name[1:]) if name.startswith(".") else value_at(whole, name)
    if value is None and default is not None:
        return yaml.safe_load(default)
    return value


def merged(below: Any, above: Any) -> Any:
    """One plain config over another, as Hydra merges them."""
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    result = dict(below)
    for key, value in above.items():
        result[key] = merged(below[key], value) if key in below else value
    return result


def _class_of(node: Any) -> Any:
    """The name of a node's class, without its module; any other value as it is.

    The class may have moved to another module since the config was written.
    """
    if not isinstance(node, Mapping):
        return node
    return str(node.get("_target_")).rpartition(".")[2]
