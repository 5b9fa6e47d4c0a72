"""Hydra's own node holds targets and logging classes too: only Hydra's, its plugins' and ours may stand there.

A prefix would not do: `hydra._internal.core_plugins.bash_completion.os.system` and `logging.os.system` begin well.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

ALLOWED_HOMES = ("hydra._internal.core_plugins.", "hydra_plugins.", "attnlab.tracking.")
# By the names that the sweeper's own config gives them; `_is_class_of` would refuse a name that is imported from below.
ALLOWED_SAMPLERS = tuple(
    f"optuna.samplers.{name}Sampler" for name in ("TPE", "Random", "CmaEs", "NSGAII", "MOTPE", "Grid")
)
# Of Optuna's sweeper: a class by another key, and a database, which does not work with the versions around it.
MUST_BE_NULL = ("hydra.sweeper.custom_search_space", "hydra.sweeper.storage")
ALLOWED_LOGGING = (
    "colorlog.ColoredFormatter",
    "logging.FileHandler",
    "logging.Formatter",
    "logging.NullHandler",
    "logging.StreamHandler",
    "logging.handlers.RotatingFileHandler",
    "logging.handlers.TimedRotatingFileHandler",
)
# What Hydra builds objects from.
BUILT = ("hydra.launcher.", "hydra.sweeper.", "hydra.callbacks.", "hydra.job_logging.", "hydra.hydra_logging.")
ALLOWED_STREAMS = ("ext://sys.stdout", "ext://sys.stderr")


def hydra_problems(node: DictConfig) -> list[str]:
    """A sentence for each class in the composed `hydra` node that is none of those allowed."""
    problems = []
    for path, key, value in _leaves(node, "hydra"):
        if path in MUST_BE_NULL and value is not None:
            problems.append(f"{path} must be null, got {value!r}")
        if key == "_target_" and path.startswith("hydra.sweeper.sampler."):
            if value not in ALLOWED_SAMPLERS:
                problems.append(f"{path} must be one of {', '.join(ALLOWED_SAMPLERS)}; got {value!r}")
        elif key == "_target_" and not _is_class_of(value, ALLOWED_HOMES):
            homes = ", ".join(home.rstrip(".") for home in ALLOWED_HOMES)
            problems.append(f"{path} must be a class of {homes}; got {value!r}")
        in_logging = path.startswith(("hydra.job_logging.", "hydra.hydra_logging."))
        if in_logging and key in ("()", "class") and value not in ALLOWED_LOGGING:
            problems.append(f"{path} must be one of {', '.join(ALLOWED_LOGGING)}; got {value!r}")
        if in_logging and str(value).startswith("ext://") and value not in ALLOWED_STREAMS:
            problems.append(f"{path} must be one of {', '.join(ALLOWED_STREAMS)}; got {value!r}")
        if path.startswith(BUILT) and "${hydra:" in str(value):
            problems.append(f"{path} must not use ${{hydra:...}}, which is only known when it is too late to check")
    return problems


def _is_class_of(target: object, homes: tuple[str, ...]) -> bool:
    """Whether `target` names a class that is defined in the module that it names, at one of these homes."""
    if not isinstance(target, str) or not target.startswith(homes):
        return False
    module_name, _, name = target.rpartition(".")
    try:
        found = vars(importlib.import_module(module_name)).get(name)
    except ImportError:
        return False
    return inspect.isclass(found) and found.__module__ == module_name


def _leaves(node: DictConfig | ListConfig, path: str) -> Iterator[tuple[str, str, Any]]:
    """Every value with its path and key; an interpolation that stands for a whole node is followed into it."""
    keys: Any = range(len(node)) if isinstance(node, ListConfig) else node.keys()
    for key in keys:
        place = f"{path}.{key}"
        try:
            value = None if OmegaConf.is_missing(node, key) else node[key]
        except (OmegaConfBaseException, ValueError):  # only known once a job runs: the text itself must be harmless
            value = OmegaConf.to_container(node, resolve=False)[key]  # type: ignore[index]
        if isinstance(value, (DictConfig, ListConfig)):
            yield from _leaves(value, place)
        else:
            yield place, str(key), value
