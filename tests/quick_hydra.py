"""Hydra's composition without what it does again and again, to the same result.

A command composes its config twice, and there are thousands of commands in the tests. Processes
that the tests start with an interpreter of their own have Hydra as it is.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Sequence
from typing import Any

import yaml


def compose_quickly() -> None:
    """Compose so from now on, in this process and its forks."""
    from hydra._internal import defaults_list
    from hydra._internal.hydra import Hydra
    from omegaconf import OmegaConf, _utils

    make_map, mode_of = defaults_list._create_interpolation_map, Hydra.get_mode
    loader = _utils.get_yaml_loader()

    def map_where_needed(overrides: Any, defaults: Sequence[Any], self_added: bool) -> Any:
        """Only the place of a default that is an interpolation is looked up in the map."""
        if any(default.is_interpolation() for default in defaults if not default.is_self()):
            return make_map(overrides, defaults, self_added)
        return None

    def mode(hydra: Hydra, config_name: str | None, overrides: list[str]) -> Any:
        """Hydra composes the whole config to see `hydra.mode`, which no file of ours sets."""
        if not any(re.search(r"hydra\W+mode", override) for override in overrides):
            return None
        return mode_of(hydra, config_name=config_name, overrides=overrides)

    @functools.lru_cache(maxsize=2_000)
    def parsed(text: str) -> Any:
        return yaml.load(text, Loader=loader)

    load = OmegaConf.load

    def load_once(file: Any) -> Any:
        """A file that was read before is not parsed again."""
        if not hasattr(file, "read"):
            return load(file)
        try:
            value = copy.deepcopy(parsed(file.read()))
        except yaml.YAMLError:  # the error names the file
            file.seek(0)
            return load(file)
        return OmegaConf.create({} if value is None else value)

    defaults_list._create_interpolation_map = map_where_needed
    Hydra.get_mode = mode
    OmegaConf.load = staticmethod(load_once)
