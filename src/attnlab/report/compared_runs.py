"""What an evaluation wrote, whichever task it was of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.evaluation.attention_map import AttentionMap, load_maps
from attnlab.evaluation.by_length import length_buckets
from attnlab.report import stage_files
from attnlab.report.read import read_json, read_lines

# How the files of the two tasks call what is read, and what it should become.
_TRANSLATION, _CLASSIFICATION = ("source", "reference"), ("text", "label")


@dataclass(frozen=True, eq=False)
class EvaluationFiles:
    """An evaluation folder.

    metrics: of the test split; what could not be measured is left out.
    sentences: rows of hypotheses.jsonl or of predictions.jsonl.
    by_length: rows {"from", "to", "sentences", ...} with quality by source length.
    maps: attention; none where nothing attends.
    translates: whether it is a translation's, or a classification's.
    """

    metrics: dict[str, float]
    signatures: dict[str, str]
    sentences: list[dict[str, Any]]
    by_length: list[dict[str, Any]]
    maps: list[AttentionMap]
    translates: bool

    @cached_property
    def test_set(self) -> str:
        """A digest of what was read and of what it should become: runs that share it saw the same sentences."""
        source, target = _TRANSLATION if self.translates else _CLASSIFICATION
        texts = json.dumps([[row[source], row[target]] for row in self.sentences])
        return hashlib.sha256(texts.encode()).hexdigest()


def has_evaluation(folder: Path) -> bool:
    """Whether an evaluation was written here."""
    return (folder / "metrics.json").is_file()


def read_evaluation(folder: Path) -> EvaluationFiles:
    """Raises ExperimentError where a file is missing."""
    metrics = read_json(folder / "metrics.json", "evaluate", stage_files.Metrics)
    translates = (folder / "hypotheses.jsonl").is_file()
    name, kind = ("hypotheses", stage_files.Translated) if translates else ("predictions", stage_files.Predicted)
    sentences = read_lines(folder / f"{name}.jsonl", kind)
    maps = folder / "attention.npz"
    return EvaluationFiles(
        metrics={name: float(value) for name, value in metrics.items() if value is not None},
        signatures=read_json(folder / "signatures.json", "evaluate", stage_files.Signatures),
        sentences=sentences,
        by_length=(
            read_json(folder / "by_length.json", "evaluate", list[stage_files.OfLength])
            if translates
            else accuracy_by_length(sentences)
        ),
        maps=load_maps(maps) if maps.is_file() else [],
        translates=translates,
    )


def accuracy_by_length(sentences: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows {"from", "to", "sentences", "accuracy"} of predictions; lengths in tokens, both ends included."""
    lengths = np.array([row["length"] for row in sentences], dtype=np.int64)
    correct = np.array([row["correct"] for row in sentences], dtype=np.float64)
    table = []
    for low, high in length_buckets(lengths):
        inside = (lengths >= low) & (lengths <= high)
        accuracy = float(correct[inside].mean())
        table.append({"from": low, "to": high, "sentences": int(inside.sum()), "accuracy": accuracy})
    return table
