"""What an experiment chose and set otherwise than the defaults, or what was typed, as one types it.

The defaults are read from the files of conf/ and of the user's own folders of configs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attnlab.config.choices import (
    changed_settings,
    conf_file,
    implied_choices,
    listed_choices,
    merged,
    written_by,
)
from attnlab.config.params import as_text, leaves, value_at
from attnlab.errors import masked
from attnlab.experiment.override_text import as_override
from attnlab.project import CONF

# Groups of which several choices go together, `callbacks=[lr_monitor,device_stats]`. Hydra does not
# record these choices, so they are found by their settings.
_LISTED = ("trainer", "callbacks", "loggers", "metrics", "pictures")
# They decide which other choices are the defaults, in this order.
_FIRST = ("experiment", "task", "debug", "data")
# Where to write and whether to train, which says nothing of the experiment.
_BESIDE_THE_EXPERIMENT = ("hydra", "paths", "chain", "rerun", "dry_run")
_INPUTS = ("paths.ensemble",)


@dataclass(frozen=True)
class Change:
    """A choice or a setting that is not the default.

    place: the group, `model/attention`, or the path of the setting, `training.max_steps`.
    override: as one types it, `training.max_steps=20`.
    default: what it would be.
    is_typed: whether the command says it; the others follow from a preset or another choice.
    """

    place: str
    override: str
    default: str
    is_typed: bool = False


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
    written = written_by(recorded, searched)
    listed = list(_listed_choices(config, written, searched))
    for group, name in listed:
        written = merged(written, conf_file(group, name, searched).values)
    return [
        *_changed_choices(recorded, searched),
        *_changed_lists(listed),
        *_changed_settings(written, config),
    ]


def with_typed(
    found: Sequence[Change], typed: Iterable[str], choices: Mapping[str, str]
) -> list[Change]:
    """The changes, of which those that were typed are marked, and what was typed beside them.

    The latter is the default, but somebody asked for it.

    found: by `changes`.
    typed: the overrides of a command.
    choices: {group: choice}, as Hydra records them.
    """
    places = {change.place for change in found}
    marked: set[str] = set()
    beside = []
    for text in typed:
        key, sign, value = text.lstrip("+~").partition("=")
        section = key.replace("/", ".").partition(".")[0]
        if not sign or (section in _BESIDE_THE_EXPERIMENT and key not in _INPUTS):
            continue

        of_key = {key} & places
        if key not in choices:  # a setting may be a section of several
            of_key |= {place for place in places if place.startswith(f"{key}.")}
        marked |= of_key
        if not of_key:
            beside.append(Change(key, masked(f"{key}={value}"), masked(value), is_typed=True))
    return [*(replace(each, is_typed=each.place in marked) for each in found), *beside]


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
        found = listed_choices(group, config.get(group), written.get(group), folders)
        yield from ((group, name) for name in found)


def _changed_lists(listed: Sequence[tuple[str, str]]) -> Iterator[Change]:
    for group in _LISTED:
        names = [name for other, name in listed if other == group]
        if len(names) == 1:
            yield Change(group, f"{group}={names[0]}", "none")
        elif names:
            yield Change(group, f"{group}=[{','.join(names)}]", "none")


def _changed_settings(written: Any, config: Mapping[str, Any]) -> Iterator[Change]:
    for key, value in [*changed_settings(written, config), *_from_environment(written, config)]:
        section = key.partition(".")[0]
        if section in _BESIDE_THE_EXPERIMENT and key not in _INPUTS:
            continue
        default = value_at(written, key)
        # What it means on this machine is resolved by now.
        if key == "hardware.precision" and default == "auto":
            continue
        is_new = not _has(written, key)
        override = f"{'+' if is_new else ''}{key}={as_override(value)}"
        yield Change(key, masked(override), "not set" if is_new else masked(as_text(default)))


def _from_environment(written: Any, config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path, value) of the settings that name an environment variable, which the files do not.

    Values with an interpolation in them are not compared with those of the files.
    """
    for key, value in leaves(config):
        default = value_at(written, key)
        if "${oc." in str(value) and "${" not in str(default):
            yield key, value


def _has(config: Any, path: str) -> bool:
    above, _, name = path.rpartition(".")
    section = value_at(config, above) if above else config
    return isinstance(section, Mapping) and name in section
