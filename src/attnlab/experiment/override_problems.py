"""What Hydra and OmegaConf complain of, in the words of this project's configs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from attnlab.config.secrets import told_override
from attnlab.errors import show


class Groups:
    """The groups of the config folders and their choices."""

    def __init__(self, loader: ConfigLoader) -> None:
        self.loader = loader

    def problem(self, override: Override) -> str | None:
        """What is wrong with an override that chooses from a group, or should."""
        key = override.key_or_group
        if key == "hydra":
            return "hydra is Hydra's own node and stays; set what is in it by its own key, such as hydra.verbose=true"
        if override.is_sweep_override():
            told = told_override(str(override.input_line))
            return f"{told} has several values; add -m to run one after the other, or quote the text"
        if override.is_delete():
            return None
        value = override.value()
        choices = self.loader.get_group_options(key)
        if choices:
            chosen = value if isinstance(value, list) else [value]
            if all(choice in choices for choice in chosen):
                return None
            given = override.get_value_element_as_str()
            texts = [str(choice).lower() if isinstance(choice, bool) else str(choice) for choice in chosen]
            if all(text in choices for text in texts):  # a number is no choice to Hydra, whatever its name
                quoted = ",".join(f"'{text}'" for text in texts)
                quoted = f"[{quoted}]" if isinstance(value, list) else quoted
                return f'{key} must be a text, got {given}; write "{key}={quoted}" with quotes that reach the program'
            return f"{key} must be one of {', '.join(choices)}; got {given!r}{_hint(given, choices)}"
        if "/" in key and "@" not in key:
            groups = [group for group in self._names() if group.split("/")[0] != "hydra"]
            return f"{key} is not a group of the config{_hint(key, groups)}; the groups are: {', '.join(groups)}"
        as_group = key.replace(".", "/")
        if isinstance(value, str) and as_group != key and value in self.loader.get_group_options(as_group):
            return f"{key} is a group, and its choice is written with a slash: {as_group}={value}"
        return None

    def _names(self, parent: str = "") -> list[str]:
        names = []
        for name in sorted(self.loader.list_groups(parent)):
            path = f"{parent}/{name}" if parent else name
            if self.loader.get_group_options(path, ObjectType.CONFIG):
                names.append(path)
            names += self._names(path)
        return names


def unreadable(text: str) -> str:
    return (
        f"{show(told_override(text))} cannot be read; write key=value, and put text with any of ,:=()[]{{}}' in quotes "
        "that reach the program, as in \"data.path='a, b'\""
    )


def unknown_key(error: Exception) -> str | None:
    """The key that an override names and the config lacks."""
    found = re.search(r"Could not override '([^']+)'|'([^']+)' does not exist", str(error))
    return found and (found[1] or found[2])


def already_set(error: Exception) -> str | None:
    """The key that an override with a plus sign means to add, but that is there."""
    found = re.search(r"already at '([^']+)'|Multiple values for (\S+)\.\s", str(error))
    return found and (found[1] or found[2])


def unknown_setting(key: str, config: DictConfig) -> str:
    """`training.max_step` -> what `training` has, and what was probably meant."""
    if "/" in key:  # a group that there is, or `Groups.problem` would have told
        return f"{key} has no place in this composition: it belongs to another model or another task; leave it out"
    node: Any = OmegaConf.to_container(config, resolve=False)
    place = ""
    for name in key.split("."):
        if not isinstance(node, dict) or name not in node:
            break
        node, place = node[name], f"{place}.{name}" if place else name
    if place == key:  # Hydra takes out no null
        return f"{key} is null, which ~{key} does not take out; leave that away, or give it a value"
    if not isinstance(node, dict):
        return f"{key} is not a setting; {place} is a single value, so write {place}=..."
    names = sorted(name for name in node if name not in ("_target_", "hydra"))
    near = difflib.get_close_matches(key.rsplit(".", 1)[-1], names, n=1)
    everywhere = [path for path in _paths(config) if path.rsplit(".", 1)[-1] == key.rsplit(".", 1)[-1]]
    meant = [f"{place}.{near[0]}" if place else near[0]] if near else everywhere[:3]
    hint = f"; did you mean {' or '.join(meant)}?" if meant else ";"
    return f"{key} is not a setting{hint} {place or 'the config'} has: {', '.join(names)}"


def config_sentence(error: Exception) -> str:
    """What Hydra or OmegaConf says of a config, with the place where it knows one."""
    text = str(error) or f"a config file cannot take its place in the config: {error.__cause__}"
    key = getattr(error, "full_key", None)
    place = f"{key}: " if key else ""
    rules = [
        (
            r"Environment variable '([^']+)' not found",
            "the environment variable {0} is not set; set it, or write ${{oc.env:{0},default}}",
        ),
        (
            r"Interpolation key '([^']+)' not found",
            "there is no setting {0} that ${{{0}}} could stand for; name one that there is, or give the value itself",
        ),
        (
            r"Unsupported interpolation type (\S+)",
            "there is no interpolation ${{{0}:...}}; give the value itself, or an environment variable by "
            "${{oc.env:NAME}}",
        ),
        (
            r"(Recursive interpolation|Interpolation to parent node|maximum recursion depth)",
            "the reference leads back to itself; give the value itself",
        ),
        (
            r"HydraConfig was not set",
            "${{hydra:...}} is not known before a run starts; give the value itself",
        ),
        (
            r"Error trying to access (\S+?):",
            "${{{0}}} leads nowhere, there is no such setting; name one that there is, or give the value itself",
        ),
        (
            r"while resolving interpolation: (.+)",
            "the reference cannot be followed ({0}); give the value itself",
        ),
        (
            r"Could not delete '([^']+)'. No match in the defaults list",
            "~{0} takes out nothing: that is not what was chosen; leave it away",
        ),
        (
            r"In '([^']+)': Could not override '([^']+)'",
            "{0} chooses a {1} too, and the model or task of this composition has no {1}; choose the model and the "
            "task that {0} is for, or leave it out",
        ),
        (
            r"Cannot find primary config '([^']*)'",
            "there is no {0}.yaml in the config folder; give the name of one that there is, such as config",
        ),
    ]
    for pattern, sentence in rules:
        found = re.search(pattern, text)
        if found:
            return place + sentence.format(*found.groups())
    if text.startswith("Error merging override") and "Cannot merge" in str(error.__cause__):
        given = told_override(text.removeprefix("Error merging override "))
        return (
            f"{given} is not possible: {given.partition('=')[0].lstrip('+~')} holds a mapping or a list, and the other "
            "cannot take its place; give what is to be changed in it by its own key"
        )
    if text.startswith("Error merging override") and error.__cause__ is not None:
        given = told_override(text.removeprefix("Error merging override "))
        reason = str(error.__cause__).split("\n", 1)[0]
        return f"{given} is not possible ({reason}); write key=value, and a reference as ${{another.key}}"
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if line and not line.startswith(("full_key:", "object_type=", "See https"))]
    return place + " ".join(told)


def _hint(given: str, names: list[str]) -> str:
    close = difflib.get_close_matches(given, names, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _paths(config: DictConfig) -> list[str]:
    def walk(node: Any, path: str) -> Iterator[str]:
        for key, value in node.items():
            if key != "hydra" or path:
                yield f"{path}{key}"
                if isinstance(value, dict):
                    yield from walk(value, f"{path}{key}.")

    return list(walk(OmegaConf.to_container(config, resolve=False), ""))
