"""Overrides that Hydra accepts and only partly follows, refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hydra.errors import HydraException

from attnlab.errors import ExperimentError, show
from attnlab.experiment.config_sources import SEVERAL_CHOICES, folder_of, groups, package_folder
from attnlab.experiment.override_text import PARSER


def check_overrides(arguments: Sequence[str]) -> None:
    """Raise ExperimentError for overrides that Hydra accepts and only partly follows."""
    _check_search_path(arguments)
    _check_single_choices(arguments)


def _check_single_choices(arguments: Sequence[str]) -> None:
    """Raise ExperimentError for a list of choices where a group takes one.

    Hydra itself merges their files, of which the last one wins.
    """
    problems = []
    single = groups().keys() - set(SEVERAL_CHOICES)
    for argument in arguments:
        group = argument.partition("=")[0].partition("@")[0].lstrip("+")
        if group not in single or "=[" not in argument:
            continue
        choices = _listed(argument)
        if len(choices) > 1:
            several = ",".join(choices)
            problems.append(
                f"{group} takes one choice, got [{several}]; with -m, write {group}={several}"
            )
        elif choices:
            problems.append(
                f"{group} takes one choice, got [{choices[0]}]; write {group}={choices[0]}"
            )
    if problems:
        raise ExperimentError(problems)


def _check_search_path(arguments: Sequence[str]) -> None:
    """Raise ExperimentError for a place of `hydra.searchpath=[...]` without choices.

    Where it does not exist, Hydra itself only warns, and goes on without the choices in it.
    """
    problems = []
    for argument in arguments:
        if not argument.startswith("hydra.searchpath="):
            continue
        for address in _listed(argument):
            if not _exists(address):
                problems.append(
                    "hydra.searchpath must list folders that exist, such as file://my_conf, and "
                    "packages that Python finds (installed, or by PYTHONPATH), such as "
                    f"pkg://my_package.conf; got {show(address)}"
                )
            elif _has_choices_below(address):
                separator = "." if address.startswith("pkg://") else "/"
                problems.append(
                    f"hydra.searchpath names {show(address)}, which holds no choices, but its "
                    f"folder conf does; write {address.rstrip('/')}{separator}conf"
                )
    if problems:
        raise ExperimentError(problems)


def _listed(override: str) -> list[str]:
    """The values of a list in an override; empty where Hydra itself refuses it."""
    try:
        values = PARSER.parse_override(override).value()
    except HydraException:
        return []
    if not isinstance(values, list):
        return []
    return [str(value) for value in values]


def _exists(address: str) -> bool:
    """Whether a config source is there; True for a kind of source that only Hydra knows."""
    schema, _, path = address.partition("://")
    if schema == "file":
        return Path(path).is_dir()
    if schema == "pkg":
        return package_folder(path) is not None
    return True


def _has_choices_below(address: str) -> bool:
    """Whether the choices are in a folder `conf` of a source that has none itself."""
    schema, _, path = address.partition("://")
    folder = folder_of(schema, path)
    if folder is None or any(folder.glob("*.yaml")):
        return False
    below = groups([folder / "conf"]) if (folder / "conf").is_dir() else {}
    return bool(below) and all(place.split("/")[0] == "conf" for place in groups([folder]))
