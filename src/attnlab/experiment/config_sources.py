"""Where configs come from: the folders of Hydra's search path, their groups and choices.

This module imports nothing heavy.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from attnlab.project import CONF

PRESETS = "experiment"
# Groups of which several choices go together: the lists in conf/config.yaml, and presets.
SEVERAL_CHOICES = ("trainer", "callbacks", "loggers", "metrics", "pictures", PRESETS, "debug")
LIBRARIES = ("hydra", "hydra_plugins", "omegaconf")


def groups(folders: Sequence[Path] = (CONF,)) -> dict[str, list[str]]:
    """{group: its choices}, of Hydra's own nothing.

    A folder in `experiment` is no group, but a part of its presets' names: `lesson/dot`.
    """
    found: dict[str, set[str]] = {}
    for folder in folders:
        for file in folder.rglob("*.yaml"):
            place, _, choice = file.relative_to(folder).with_suffix("").as_posix().rpartition("/")
            if place.startswith(f"{PRESETS}/"):
                choice = f"{place.removeprefix(f'{PRESETS}/')}/{choice}"
                place = PRESETS
            if place.split("/")[0] not in ("", "hydra"):
                found.setdefault(place, set()).add(choice)
    return {place: sorted(choices) for place, choices in sorted(found.items())}


def config_folders(config: DictConfig | None = None) -> tuple[Path, ...]:
    """The folders of configs that a job is composed of: conf/, and those of the user's.

    They come from `--config-dir` and `hydra.searchpath`, in the order in which Hydra looks.

    config: with its `hydra` node; without one that of the running job.
    """
    node = None if config is None else config.get("hydra")
    if node is None and HydraConfig.initialized():
        node = HydraConfig.get()
    folders = [CONF]
    for source in [] if node is None else node.runtime.config_sources:
        folder = folder_of(source.schema, source.path)
        if folder is not None and folder not in folders:
            folders.append(folder)
    return tuple(folders)


def search_folders(config: DictConfig) -> list[Path]:
    """The folders of `hydra.searchpath` of a composed config."""
    folders = []
    for address in config.hydra.searchpath:
        schema, _, path = str(address).partition("://")
        folder = folder_of(schema, path)
        if folder is not None:
            folders.append(folder)
    return folders


def folder_of(schema: str, path: str) -> Path | None:
    """The folder of a config source; None where it is none, or Hydra's own."""
    if schema == "file":
        return Path(path)
    if schema != "pkg" or path.partition(".")[0] in LIBRARIES:
        return None
    return package_folder(path)


def package_folder(name: str) -> Path | None:
    """The folder of a package, as `lab_extras.conf` or `lab_extras/conf`; None if there is none."""
    try:
        spec = importlib.util.find_spec(name.replace("/", ".").rstrip("."))
    except (ModuleNotFoundError, ValueError):  # of a parent that does not exist, of an empty name
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])
