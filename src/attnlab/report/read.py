"""The files of the stages as plain values."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from attnlab.errors import ExperimentError
from attnlab.files import parse_json


def read_json(path: Path, stage: str, kind: Any) -> Any:
    """A JSON file that `stage` writes, which must hold a `kind` of `attnlab.report.stage_files`."""
    text = _text(path, stage)
    try:
        TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        raise _other_content(path, stage, error) from error
    return parse_json(text)


def read_lines(path: Path, kind: Any) -> list[dict[str, Any]]:
    """What `evaluate` wrote of each sentence, in the split's order; each line must hold a `kind`."""
    adapter = TypeAdapter(kind)
    rows = []
    # Not splitlines(): a sentence may hold other line ends, such as U+2028.
    for number, line in enumerate(_text(path, "evaluate").split("\n"), start=1):
        if line:
            try:
                adapter.validate_json(line, strict=True)
            except ValidationError as error:
                raise _other_content(path, "evaluate", error, f" in line {number}") from error
            rows.append(parse_json(line))
    return rows


def read_history(path: Path) -> dict[str, list[tuple[int, float]]]:
    """{name: [(step, value), ...]} of a history.csv (step, epoch, name, value), finite values alone."""
    history: dict[str, list[tuple[int, float]]] = {}
    reader = csv.DictReader(_text(path, "train").split("\n"))
    try:
        for row in reader:
            value = float(row["value"] or "nan")
            if math.isfinite(value):
                history.setdefault(row["name"], []).append((int(row["step"]), value))
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise ExperimentError(
            f"{path} is no history of a training in line {reader.line_num}; run the train stage again"
        ) from error
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
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path} is not UTF-8; run the {stage} stage again") from error
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read ({error.strerror}); run the {stage} stage again") from error


def _other_content(path: Path, stage: str, error: ValidationError, line: str = "") -> ExperimentError:
    """What is wrong first, and where in the file."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return ExperimentError(f"{path} is not valid JSON{line} ({first['msg']}); run the {stage} stage again")
    place = ".".join(map(str, first["loc"]))
    return ExperimentError(
        f"{path} does not hold what it should{line} ({place + ': ' if place else ''}{first['msg']}); run the {stage} "
        "stage again"
    )
