"""Files that the stages write and the pages read: JSON, JSON lines and learning curves."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.evaluation.attention_map import AttentionMap, load_maps
from attnlab.evaluation.examples import ATTENTION, read_example_rows
from attnlab.files import read_own_record

METRICS, SIGNATURES = "metrics.json", "signatures.json"
TASK = "task.json"  # the node of the task that wrote the evaluation


@dataclass(frozen=True, eq=False)
class EvaluationFiles:
    """An evaluation folder.

    metrics: of the test split, without null values.
    signatures: {metric: how it was computed}.
    sentences: one row a sentence, in the split's order.
    by_length: rows {"from", "to", "sentences", ...} with quality by source length; empty where the
        evaluation has none.
    maps: attention maps; empty without attention.
    map_rows: the row of `sentences` that each map belongs to; None where the evaluation, an older
        one, does not say.
    """

    metrics: dict[str, float]
    signatures: dict[str, str]
    sentences: list[dict[str, Any]]
    by_length: list[dict[str, Any]]
    maps: list[AttentionMap]
    map_rows: list[int] | None = None


def has_evaluation(folder: Path) -> bool:
    return (folder / METRICS).is_file()


def read_evaluation(folder: Path, sentences: str) -> EvaluationFiles:
    """Read an evaluation folder.

    sentences: the name of the file with a row a sentence.

    Raises ExperimentError where a file is missing or no JSON.
    """
    metrics = read_json(folder / METRICS, "evaluate")
    known_metrics = {name: float(value) for name, value in metrics.items() if value is not None}
    signatures = read_json(folder / SIGNATURES, "evaluate")
    rows = read_lines(folder / sentences)

    # Not every task and model has these.
    by_length_file = folder / "by_length.json"
    by_length = read_json(by_length_file, "evaluate") if by_length_file.is_file() else []
    maps_file = folder / ATTENTION
    maps = load_maps(maps_file) if maps_file.is_file() else []
    return EvaluationFiles(
        metrics=known_metrics,
        signatures=signatures,
        sentences=rows,
        by_length=by_length,
        maps=maps,
        map_rows=_rows_of_maps(folder, maps),
    )


def _rows_of_maps(folder: Path, maps: Sequence[AttentionMap]) -> list[int] | None:
    """The row of each map, where the evaluation names its typical sentences.

    A model without attention has typical sentences, too, and no maps of them.
    """
    rows = read_example_rows(folder)
    if rows is None or len(rows["typical"]) != len(maps):
        return None
    return rows["typical"]


def read_json(path: Path, stage: str) -> Any:
    """The content of a JSON file that `stage` writes.

    Raises ExperimentError where it is missing or damaged.
    """
    return read_own_record(path, object, f"run the {stage} stage again")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file that the evaluation writes."""
    # Not splitlines(): a sentence may contain U+2028.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def read_history(path: Path) -> dict[str, list[tuple[int, float]]]:
    """{name: [(step, value), ...]} of a history.csv (step, epoch, name, value).

    Only finite values.
    """
    history: dict[str, list[tuple[int, float]]] = {}
    for row in csv.DictReader(path.read_text(encoding="utf-8").split("\n")):
        value = float(row["value"] or "nan")
        if math.isfinite(value):
            points = history.setdefault(row["name"], [])
            points.append((int(row["step"]), value))

    for points in history.values():
        points.sort(key=lambda point: point[0])
    return history


def write_curves(history: Mapping[str, Sequence[tuple[int, float]]], folder: Path) -> None:
    """Write a file for each learning curve: `<name>.csv` with the columns step and value.

    The value's column has the last word of the name, as `bleu` of `validation/free_running/bleu`.
    One table of all curves would have empty cells, for they have values at different steps, and
    charts of DVC draw an empty cell as 0.
    """
    folder.mkdir()
    for name, points in history.items():
        path = folder / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["step", name.rpartition("/")[2]])
            writer.writerows(points)
