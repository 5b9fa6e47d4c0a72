"""The choices of conf/: which one a section of a config is, and which ones are the defaults.

They are read from the files of conf/ and from a config alone, without Hydra: a model folder, or a
run in the tracker, knows its config but not how it was composed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

from attnlab.project import CONF

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


@functools.cache
def conf_file(group: str, choice: str, folders: tuple[Path, ...] = (CONF,)) -> ConfFile:
    """The file of a choice; empty where there is none.

    folders: of configs, in the order in which they are searched.
    """
    paths = [folder / group / f"{choice}.yaml" for folder in folders]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return ConfFile({}, {}, {})
    text = path.read_text(encoding="utf-8")
    content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}

    found = ConfFile({}, {}, {})
    for entry in content.pop("defaults", []):
        if isinstance(entry, Mapping):
            found = _with_choices(found, group, entry)
        elif entry != "_self_":
            base = conf_file(group, entry, folders)
            found = ConfFile(
                values=merged(found.values, base.values),
                defaults={**found.defaults, **base.defaults},
                overrides={**found.overrides, **base.overrides},
                bases=found.bases + 1 + base.bases,
            )

    package = re.search(r"^# @package (\S+)$", text, re.MULTILINE)
    place = group.replace("/", ".") if package is None else package[1].replace("_global_", "")
    for key in reversed(place.split(".") if place else []):
        content = {key: content}
    return found._replace(values=merged(found.values, content))


def _with_choices(file: ConfFile, group: str, entry: Mapping[str, Any]) -> ConfFile:
    """The file with one more entry of its defaults list.

    An entry is `{"encoder": "gru"}` or `{"override /model/encoder": "lstm"}`.
    """
    defaults, overrides = dict(file.defaults), dict(file.overrides)
    for key, choice in entry.items():
        name = key.removeprefix("override ")
        # Nothing, several choices together, or the choice of a group for another place
        if not isinstance(choice, str) or "@" in name:
            continue
        of_group = (
            name.removeprefix("/") if name.startswith("/") or not group else f"{group}/{name}"
        )
        if key == name:
            defaults[of_group] = str(choice)
        else:
            overrides[of_group] = str(choice)
    return file._replace(defaults=defaults, overrides=overrides)


def default_choices(
    task: str, preset: str | None = None, data: str | None = None
) -> dict[str, str]:
    """{group: choice} of a config that chooses no more than its task, a preset and its data."""
    overrides = dict(conf_file("task", task).overrides)
    if preset is not None:
        overrides |= conf_file("experiment", preset).overrides
    if data is not None:
        overrides["data"] = data

    chosen: dict[str, str] = {}
    todo = dict(conf_file("", "config").defaults)
    while todo:
        group, choice = todo.popitem()
        chosen[group] = overrides.get(group, choice)
        file = conf_file(group, chosen[group])
        overrides = {**file.overrides, **overrides}
        todo |= file.defaults
    return {group: overrides.get(group, choice) for group, choice in chosen.items()}


def choice_of(group: str, node: Any, likely: str | None = None) -> str | None:
    """The choice of a group whose file is closest to a section.

    None if no file names the section's class.

    likely: the choice to prefer if others are equally close.
    """
    place = group.replace("/", ".")
    names = {path.stem for path in (CONF / group).glob("*.yaml")}
    found: list[tuple[int, str]] = []
    for name in sorted(names, key=lambda name: (name != likely, name)):
        written = value_in(conf_file(group, name).values, place)
        if _class_of(written) == _class_of(node):
            found.append((len(list(differences(written, node))), name))
            if found[-1][0] == 0:
                return name
    return min(found, key=lambda each: each[0])[1] if found else None


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
    reference = _REFERENCE.fullmatch(written) if isinstance(written, str) else None
    if reference is not None and whole is not None:
        name, default = reference.groups()
        meant = node.get(name[1:]) if name.startswith(".") else value_in(whole, name)
        if meant is None and default is not None:
            meant = yaml.safe_load(default)
        return value == written or "${" in str(meant) or meant == value
    if "${" in str(written) or "${" in str(value):
        return True
    try:  # YAML takes 1e-3 for text
        return written == value or float(written) == float(value)
    except (TypeError, ValueError):
        return False


def merged(below: Any, above: Any) -> Any:
    """One plain config over another, as Hydra merges them."""
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    return {
        **below,
        **{
            key: merged(below[key], value) if key in below else value
            for key, value in above.items()
        },
    }


def value_in(config: Any, path: str) -> Any:
    """The value at a dotted path of a plain config; None where there is none."""
    for key in path.split("."):
        config = config.get(key) if isinstance(config, Mapping) else None
    return config


def _class_of(node: Any) -> Any:
    """The name of a node's class, without its module; any other value as it is.

    The class may have moved to another module since the config was written.
    """
    return str(node.get("_target_")).rpartition(".")[2] if isinstance(node, Mapping) else node
