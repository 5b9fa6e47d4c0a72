"""The points of `sweep=listed`: a YAML file with the overrides of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from attnlab.errors import ExperimentError, show


def read_points(path: str) -> list[list[str]]:
    """The overrides of each point.

    Raises ExperimentError for a file that is no list of lists of overrides.
    """
    try:
        content: Any = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ExperimentError(f"sweep.points: {path} cannot be read: {error}") from error
    if not isinstance(content, list) or not content:
        raise ExperimentError(
            f"sweep.points: {path} must hold a list of points, each a list of overrides, "
            f"got {show(content)}"
        )
    problems = [
        f"sweep.points: entry {number} of {path} must be a list of overrides such as "
        f"[model/attention=dot, seed=1], got {show(point)}"
        for number, point in enumerate(content, start=1)
        if not _is_point(point)
    ]
    if problems:
        raise ExperimentError(problems)
    return content


def _is_point(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(text, str) and "=" in text for text in value)


def key_of(override: str) -> str:
    """`model/attention` of `+model/attention=dot`."""
    return override.partition("=")[0].lstrip("+~")


def varied_keys(listed: list[list[str]]) -> list[str]:
    """The keys that not all points give the same value, in the order in which they stand there."""
    points = [{key_of(override): override for override in point} for point in listed]
    keys: dict[str, None] = {}
    for point in points:
        keys |= dict.fromkeys(point)

    varied = []
    for key in keys:
        values = {point.get(key) for point in points}
        if len(values) > 1:
            varied.append(key)
    return varied


def combined(listed: list[list[str]], points: list[list[str]]) -> list[list[str]]:
    """Each listed point with each of the command's; what the command says goes over the list."""
    found: dict[tuple[str, ...], None] = {}
    for one in listed:
        for point in points:
            keys = {key_of(override) for override in point}
            kept = [override for override in one if key_of(override) not in keys]
            found[(*kept, *point)] = None
    return [list(point) for point in found]
