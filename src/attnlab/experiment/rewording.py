"""What Hydra and OmegaConf raise, as sentences with the nearest names and the choices: from the errors' attributes."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

CONF = Path(__file__).resolve().parents[3] / "conf"
_LIBRARIES = ("hydra", "hydra_plugins", "omegaconf")


def is_of_hydra(error: Exception) -> bool:
    """Whether Hydra, one of its plugins or OmegaConf raised the error, or a config file is not valid YAML."""
    if isinstance(error, (HydraException, OmegaConfBaseException, yaml.YAMLError)):
        return True
    frames = list(traceback.walk_tb(error.__traceback__))
    return bool(frames) and str(frames[-1][0].f_globals.get("__name__")).split(".")[0] in _LIBRARIES


def sentence(error: BaseException) -> str:
    """What is wrong, what was given and what is allowed, in one line."""
    cause = next((each for each in _chain(error) if isinstance(each, OmegaConfBaseException)), None)
    if isinstance(error, MissingConfigException) and error.options and error.missing_cfg_file:
        group, _, choice = error.missing_cfg_file.rpartition("/")
        return f"{group} must be one of {', '.join(error.options)}; got {choice!r}{_hint(choice, error.options)}"
    if isinstance(error, OverrideParseException):
        return (
            f"{error.override!r} cannot be read; write key=value, and put text with any of ,:=()[]{{}}' in quotes that "
            "reach the program, as in \"data.path='a, b'\""
        )
    if isinstance(cause, (ConfigAttributeError, ConfigKeyError)) and cause.full_key and cause.parent_node is not None:
        return _unknown_key(str(cause.full_key), str(cause.key), cause.parent_node)
    if cause is not None and cause.full_key:
        return f"{cause.full_key}: {_first_line(cause)}"
    # Hydra's own sentences go on in further lines, which say what to write instead.
    return " ".join(str(error).split()) or _first_line(cause or error)


def groups(folder: Path = CONF) -> dict[str, list[str]]:
    """{group: its choices}, of Hydra's own nothing."""
    found: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("*.yaml")):
        place = file.relative_to(folder).parent.as_posix()
        if place.split("/")[0] not in (".", "hydra"):
            found.setdefault(place, []).append(file.stem)
    return dict(sorted(found.items()))


def _unknown_key(full_key: str, key: str, parent: Any) -> str:
    if "/" in full_key:
        names = list(groups())
        if full_key in names:
            return f"{full_key} has no place in this composition: it belongs to another model or another task"
        return f"{full_key} is not a group of the config{_hint(full_key, names)}; the groups are: {', '.join(names)}"
    place, _, _ = full_key.rpartition(".")
    if not isinstance(parent, DictConfig) or not parent:
        return f"{full_key} is not a setting, for {place} holds no settings; write +{full_key}=... to add it"
    names = sorted(str(name) for name in parent if name not in ("_target_", "hydra"))
    near = difflib.get_close_matches(key, names, n=1)
    meant = [f"{place}.{near[0]}" if place else near[0]] if near else list(_elsewhere(parent, key))[:3]
    hint = f"did you mean {' or '.join(meant)}? " if meant else ""
    return f"{full_key} is not a setting; {hint}{place or 'the config'} has: {', '.join(names)}"


def _elsewhere(parent: DictConfig, key: str, prefix: str = "") -> Iterator[str]:
    """The settings of this name further down."""
    written: Any = OmegaConf.to_container(parent, resolve=False)

    def walk(node: Any, path: str) -> Iterator[str]:
        for name, value in node.items() if isinstance(node, dict) else ():
            if name == key:
                yield f"{path}{name}"
            if path or name != "hydra":
                yield from walk(value, f"{path}{name}.")

    return walk(written, prefix)


def _hint(given: str, names: Any) -> str:
    close = difflib.get_close_matches(given, list(names), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
