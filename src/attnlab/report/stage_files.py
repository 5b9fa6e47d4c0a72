"""Readers of the files of the other stages."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

from attnlab.errors import ExperimentError


def read_text(path: Path, stage: str) -> str:
    """A file that `stage` writes; raises ExperimentError where it is missing or unreadable."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ExperimentError(f"{path} is missing; run the {stage} stage first") from None


def read_json(path: Path, stage: str) -> Any:
    """The content of a JSON file that `stage` writes."""
    return _parsed(read_text(path, stage), path, stage)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file that the evaluation writes."""
    # Not splitlines(): a sentence may contain U+2028.
    return [_parsed(line, path, "evaluate") for line in read_text(path, "evaluate").split("\n") if line]


def _parsed(text: str, path: Path, stage: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ExperimentError(f"{path} is not valid JSON ({error}); run the {stage} stage again") from error


def read_history(path: Path) -> dict[str, list[tuple[int, float]]]:
    """{name: [(step, value), ...]} of a history.csv (step, epoch, name, value); finite values only."""
    history: dict[str, list[tuple[int, float]]] = {}
    for row in csv.DictReader(read_text(path, "train").split("\n")):
        value = float(row["value"] or "nan")
        if math.isfinite(value):
            history.setdefault(row["name"], []).append((int(row["step"]), value))
    return {name: sorted(points, key=lambda point: point[0]) for name, points in history.items()}
