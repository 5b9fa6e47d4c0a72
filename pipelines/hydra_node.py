"""Hydra's own node holds targets and logging classes too: only Hydra's, its plugins' and ours may stand there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ALLOWED_TARGETS = ("hydra._internal.core_plugins.", "hydra_plugins.", "attnlab.tracking.")
ALLOWED_LOGGING_CLASSES = ("logging.", "colorlog.")


def check_hydra_node(node: Any) -> None:
    """Raise ExperimentError where the composed `hydra` node names a class that is none of those allowed."""
    from attnlab.composition.error import ExperimentError

    problems = []
    for path, key, value in _leaves(node, "hydra"):
        if key == "_target_" and not str(value).startswith(ALLOWED_TARGETS):
            problems.append(f"{path} must begin with one of {', '.join(ALLOWED_TARGETS)}; got '{value}'")
        in_logging = path.startswith(("hydra.job_logging.", "hydra.hydra_logging."))
        if in_logging and (key == "()" or (key == "class" and not str(value).startswith(ALLOWED_LOGGING_CLASSES))):
            problems.append(f"{path} must name a class of {' or '.join(ALLOWED_LOGGING_CLASSES)}; got '{value}'")
    if problems:
        raise ExperimentError(problems)


def _leaves(node: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    children: Iterator[tuple[Any, Any]] | enumerate[Any]
    if isinstance(node, dict):
        children = iter(node.items())
    elif isinstance(node, list):
        children = enumerate(node)
    else:
        return
    for key, value in children:
        place = f"{path}.{key}"
        if isinstance(value, (dict, list)):
            yield from _leaves(value, place)
        else:
            yield place, str(key), value
