"""Hydra's errors as sentences: what is wrong, what was given, what is allowed.

This module imports nothing heavy.
"""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import yaml  # type: ignore[import-untyped]
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from attnlab.config.renamed import new_choice, new_group, new_name
from attnlab.config.signature import settings_of
from attnlab.config.target import TARGET, class_named
from attnlab.errors import show
from attnlab.experiment.config_sources import (
    LIBRARIES,
    PRESETS,
    SEVERAL_CHOICES,
    config_folders,
    groups,
)
from attnlab.experiment.override_text import PARSER, unreadable


def is_of_hydra(error: Exception) -> bool:
    """Whether the error comes from Hydra, one of its plugins, OmegaConf or invalid YAML."""
    if isinstance(error, (HydraException, OmegaConfBaseException, yaml.YAMLError)):
        return True
    # The package of the code that raised it; Hydra makes its folders by pathlib.
    package = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__")).split(".")[0]
        if name != "pathlib":
            package = name
    return package in LIBRARIES


def hydra_error_sentence(error: BaseException, arguments: Sequence[str] = ()) -> str:
    """What is wrong, what was given and what is allowed, in one line.

    arguments: those of the command.
    """
    if isinstance(error, MissingConfigException) and error.options and error.missing_cfg_file:
        return _missing_choice(error.missing_cfg_file, error.options)
    if isinstance(error, OverrideParseException):
        is_multirun = "-m" in arguments or "--multirun" in arguments
        return unreadable(error.override, is_multirun)

    cause = _cause_in_omegaconf(error)
    if cause is not None and cause.full_key:
        is_unknown_key = isinstance(cause, (ConfigAttributeError, ConfigKeyError))
        if is_unknown_key and cause.parent_node is not None:
            return _unknown_key(str(cause.full_key), str(cause.key), cause.parent_node)
        if str(cause).startswith("Cannot merge DictConfig with ListConfig"):
            group = str(cause.full_key).replace(".", "/")
            return (
                f"{cause.full_key} must be a mapping of settings, got a list; write "
                f"{cause.full_key}.<setting>=... to change one, or {group}=... to choose a file"
            )
        return f"{cause.full_key}: {str(cause).splitlines()[0]}"

    not_in_the_list = re.match(r"(?:In '([^']+)': )?Could not override '([^']+)'", str(error))
    if not_in_the_list:
        choice, group = not_in_the_list.groups()
        sentence = new_group(group) or _no_such_group(group, choice, arguments)
        if sentence:
            return sentence
    if str(error).startswith("Config group override must be"):
        sentence = _no_choice(arguments)
        if sentence:
            return sentence
    # Hydra's own sentences go on in further lines, which say what to write instead.
    return " ".join(str(error).split()) or type(error).__name__


def _no_such_group(group: str, choice: str | None, arguments: Sequence[str]) -> str:
    """An error for a group of ours that the composed task has no place for; empty for any other.

    choice: the file that chooses it, `model/attention/none`; None where the command does.
    """
    if group not in groups():
        return ""
    tasks = [text for text in arguments if text.startswith("task=")]
    section = group.partition("/")[0]
    whole = f"the {section} of {tasks[-1]}" if tasks else f"this {section}"
    if choice is None:
        return f"{group} cannot be chosen: {whole} has no such part; leave {group} out"
    chosen_group, _, name = choice.rpartition("/")
    return f"{chosen_group}={name} also chooses {group}, but {whole} has no such part; leave it out"


def _missing_choice(path: str, options: Sequence[str]) -> str:
    """An error for a choice that a group has no file for.

    path: `model/attention/dott`.
    options: the files beside it, as Hydra lists them.
    """
    group, _, choice = path.rpartition("/")
    if group.startswith(f"{PRESETS}/"):
        folder = group.removeprefix(f"{PRESETS}/")
        group, choice = PRESETS, f"{folder}/{choice}"
        # Which folder Hydra lists differs between its versions.
        presets = groups(config_folders())[PRESETS]
        options = [preset for preset in presets if preset.startswith(f"{folder}/")] or presets
    renamed = new_choice(group, choice)
    if renamed is not None:
        return f"{group}={choice} is now {group}={renamed}"
    return f"{group} must be one of {', '.join(options)}; got {choice!r}{_hint(choice, options)}"


def _no_choice(arguments: Sequence[str]) -> str:
    """An error for a group whose value is no name of a choice, such as `model=null`.

    Hydra itself names only the type of the value.
    """
    choices = groups()
    for argument in arguments:
        try:
            override = PARSER.parse_override(argument)
        except HydraException:
            continue
        group, value = override.key_or_group, override.value()
        if override.is_sweep_override() or override.is_delete():
            continue
        names_choices = isinstance(value, str | list | dict)
        if group in choices and not names_choices:
            allowed = ", ".join(choices[group])
            return (
                f"{group} must be one of {allowed}, or left out for the default; got {show(value)}"
            )
    return ""


def _unknown_group(group: str) -> str:
    """An error for a group that the composed config has no place for."""
    names = list(groups())
    if group in names:
        return (
            f"{group} has no place in this composition: it belongs to another model or another task"
        )
    renamed = new_group(group)
    if renamed is not None:
        return renamed
    return (
        f"{group} is not a group of the config{_hint(group, names)}; "
        f"the groups are: {', '.join(names)}"
    )


def _unknown_key(full_key: str, key: str, parent: Any) -> str:
    """An error for a setting that the composed config lacks.

    key: the last word of `full_key`.
    parent: the node that would have it.
    """
    if "/" in full_key:
        return _unknown_group(full_key)
    place, _, _ = full_key.rpartition(".")
    if place == "trainer":
        from attnlab.training.trainer_section import refusal_of

        refusal = refusal_of(key)
        if refusal:
            return refusal
    renamed = new_name(full_key)
    if renamed:
        return f"{full_key} is now {renamed}"
    if place in SEVERAL_CHOICES and key in groups().get(place, ()):
        return (
            f"{full_key} is not chosen; write {place}={key}, or {place}=[...,{key}] beside others"
        )
    if not isinstance(parent, DictConfig) or not parent:
        return (
            f"{full_key} is not a setting, for {place} holds no settings; "
            f"write +{full_key}=... to add it"
        )
    no_settings = ("_target_", "_partial_", "hydra")
    names = sorted(str(name) for name in parent if name not in no_settings)
    is_of_the_user = not str(parent.get("_target_", "attnlab.")).startswith("attnlab.")
    # A name that is spelled alike, or else the same name further inside
    above = f"{place}." if place else ""
    similar = difflib.get_close_matches(key, names, n=1)
    # Importing attnlab's own classes takes seconds; their files name nearly all of their settings.
    is_misspelt = bool(similar) and not is_of_the_user
    if not is_misspelt and _is_left_out(parent, key):
        return (
            f"{full_key} is a setting that the config leaves out; write +{full_key}=... to set it"
        )
    if not names and is_of_the_user:
        return f"{full_key} is not a setting; {place} holds none; write +{full_key}=... to add it"
    meant = [f"{above}{name}" for name in similar]
    if not meant:
        inside = _places_named(OmegaConf.to_container(parent, resolve=False), key, above)
        meant = list(inside)[:3]
    hint = f"did you mean {' or '.join(meant)}? " if meant else ""
    return (
        f"{full_key} is not a setting; {hint}{place or 'the config'} has: "
        f"{', '.join(names) or 'no settings'}"
    )


def _is_left_out(node: DictConfig, key: str) -> bool:
    """Whether the class of a node has this setting, with a default that no file repeats."""
    try:
        target = class_named(node.get(TARGET), object)
    except ValueError:  # which the checks of the composed config explain
        return False
    return key in settings_of(target)


def _places_named(node: Any, key: str, path: str = "") -> Iterator[str]:
    """The places of this name in a plain config, but for those in Hydra's own node."""
    if not isinstance(node, dict):
        return
    for name, value in node.items():
        if name == key:
            yield f"{path}{name}"
        if name != "hydra":
            yield from _places_named(value, key, f"{path}{name}.")


def _hint(given: str, names: Iterable[str]) -> str:
    """The name that was most likely meant; empty where none is spelled alike."""
    close = difflib.get_close_matches(given, list(names), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _cause_in_omegaconf(error: BaseException) -> OmegaConfBaseException | None:
    """OmegaConf's error that led to Hydra's: it knows the key."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OmegaConfBaseException):
            return cause
        cause = cause.__cause__
    return None
