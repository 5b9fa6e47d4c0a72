"""Files of the other stages: the fields that a report needs, and functions that read and check them.

Files may have more keys than these.
"""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # typing has one that pydantic reads from Python 3.12 on

from attnlab.errors import ExperimentError

Count = Annotated[int, Field(ge=0, lt=2**53)]
Position = Annotated[int, Field(gt=-(2**31), lt=2**31)]

Metrics = dict[str, float | None]
Signatures = dict[str, str]


class Lengths(TypedDict):
    """Of one side of a split, in tokens."""

    tokens: Count
    mean_length: float
    p50_length: Count
    p95_length: Count
    max_length: Count
    unknown_tokens: Count
    unknown_rate: float
    length_histogram: Annotated[list[tuple[Count, Count]], Field(min_length=1)]


class _Split(TypedDict):
    rows: Count
    dropped: dict[str, Count]


class PairsOfSplit(_Split):
    pairs: Count
    source: Lengths
    target: Lengths


class SentencesOfSplit(_Split):
    sentences: Count
    labels: dict[str, Count]
    text: Lengths


class _SplitsOfPairs(TypedDict):
    train: PairsOfSplit
    validation: PairsOfSplit
    test: PairsOfSplit


class _SplitsOfSentences(TypedDict):
    train: SentencesOfSplit
    validation: SentencesOfSplit
    test: SentencesOfSplit


class _TwoVocabularies(TypedDict):
    source: Count
    target: Count


class _OneVocabulary(TypedDict):
    text: Count


class PairStats(TypedDict):
    vocabulary: _TwoVocabularies
    splits: _SplitsOfPairs


class SentenceStats(TypedDict):
    vocabulary: _OneVocabulary
    splits: _SplitsOfSentences


class PairInfo(TypedDict):
    source_language: str | None
    target_language: str | None
    joint: bool


class LabelInfo(TypedDict):
    labels: Annotated[list[str], Field(min_length=2)]


# With quality metrics beside these, None where nothing was measured.
OfLength = TypedDict("OfLength", {"from": Count, "to": Count, "sentences": Count})


class Offset(TypedDict):
    offset: Position
    tokens: Count


class WrongLink(TypedDict):
    token: str
    links: Count
    wrong: Count


class Confusions(TypedDict):
    labels: Annotated[list[str], Field(min_length=1)]
    counts: Annotated[list[list[Count]], Field(min_length=1)]


class Translated(TypedDict):
    source: str
    reference: str
    hypothesis: str
    source_length: Count
    exact: bool
    score: float | None


class Predicted(TypedDict):
    text: str
    label: str
    prediction: str
    probability: float
    correct: bool
    length: Count


class Seeded(TypedDict):
    """Fields of the config in a model folder."""

    seed: int


class Done(TypedDict):
    """Fields of `done.json`; others are optional."""

    step: Count


AnyObject = dict[str, Any]


def read_json(path: Path, stage: str, kind: Any) -> Any:
    """The content of a JSON file that `stage` writes, checked against `kind`, one of the types above."""
    text = _text(path, stage)
    try:
        TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        raise _other_content(path, stage, error) from error
    return json.loads(text)


def read_lines(path: Path, kind: Any) -> list[dict[str, Any]]:
    """The lines of a JSONL file that `evaluate` writes, each checked against `kind`."""
    adapter = TypeAdapter(kind)
    rows = []
    # Not splitlines(): a sentence may contain U+2028.
    for number, line in enumerate(_text(path, "evaluate").split("\n"), start=1):
        if line:
            try:
                adapter.validate_json(line, strict=True)
            except ValidationError as error:
                raise _other_content(path, "evaluate", error, f" in line {number}") from error
            rows.append(json.loads(line))
    return rows


def read_history(path: Path) -> dict[str, list[tuple[int, float]]]:
    """{name: [(step, value), ...]} of a history.csv (step, epoch, name, value); finite values only."""
    history: dict[str, list[tuple[int, float]]] = {}
    reader = csv.DictReader(_text(path, "train").split("\n"))
    try:
        for row in reader:
            value = float(row["value"] or "nan")
            if math.isfinite(value):
                history.setdefault(row["name"], []).append((int(row["step"]), value))
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise ExperimentError(
            f"{path} is not a valid training history: line {reader.line_num}; run the train stage again"
        ) from error
    return {name: sorted(points, key=lambda point: point[0]) for name, points in history.items()}


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
    """The first problem, and its place in the file."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return ExperimentError(f"{path} is not valid JSON{line} ({first['msg']}); run the {stage} stage again")
    place = ".".join(map(str, first["loc"]))
    return ExperimentError(
        f"{path} has invalid content{line} ({place + ': ' if place else ''}{first['msg']}); run the {stage} stage again"
    )
