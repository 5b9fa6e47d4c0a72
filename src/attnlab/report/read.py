"""The files of the stages as plain values."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.composition.error import ExperimentError
from attnlab.composition.json_file import parse_json


def read_json(path: Path, stage: str) -> Any:
    """A JSON file that `stage` writes."""
    try:
        return parse_json(_text(path, stage))
    except ValueError as error:
        raise ExperimentError(f"{path} is not valid JSON ({error}); run the {stage} stage again") from error


def read_lines(path: Path) -> list[dict[str, Any]]:
    """What `evaluate` wrote of each sentence, in the split's order."""
    # Not splitlines(): a sentence may hold other line ends, such as U+2028.
    try:
        return [parse_json(line) for line in _text(path, "evaluate").split("\n") if line]
    except ValueError as error:
        raise ExperimentError(f"{path} is not valid JSON ({error}); run the evaluate stage again") from error


def read_history(path: Path) -> dict[str, list[tuple[int, float]]]:
    """{name: [(step, value), ...]} of a history.csv (step, epoch, name, value), finite values alone."""
    history: dict[str, list[tuple[int, float]]] = {}
    for row in csv.DictReader(_text(path, "train").splitlines()):
        value = float(row["value"] or "nan")
        if math.isfinite(value):
            history.setdefault(row["name"], []).append((int(row["step"]), value))
    return {name: sorted(points, key=lambda point: point[0]) for name, points in history.items()}


def flatten(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """(dotted path, value) of every leaf; the paths are those that an override on the command line takes."""
    leaves = []
    for key, value in config.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            leaves.extend(flatten(value, f"{path}."))
        else:
            leaves.append((path, as_text(value)))
    return leaves


def as_text(value: Any) -> str:
    """A config value as one writes it: `null`, `true`, text without quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _text(path: Path, stage: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ExperimentError(f"{path} is missing; run the {stage} stage first") from None
