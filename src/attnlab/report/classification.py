"""The page of a classifier: beside what all pages have, confusions, coloured sentences, and sentences to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.evaluation.attention_map import load_maps
from attnlab.plots.confusion_matrix import confusion_matrix
from attnlab.plots.length_histogram import length_histogram
from attnlab.plots.sentences import coloured_sentences
from attnlab.plots.sentences_html import coloured_rows
from attnlab.report import stage_files
from attnlab.report.page import Metric, Stages, chosen_names, picture, write_page
from attnlab.report.read import read_json, read_lines
from attnlab.report.samples import sample_predictions

METRICS: dict[str, Metric] = {
    "accuracy": ("accuracy", "↑", 4, "0–1, share of sentences taken for what they are"),
    "f1": ("F1", "↑", 4, "0–1, mean over the classes"),
    "nll": ("NLL", "↓", 4, "nats, mean over sentences"),
    "attention_entropy": ("attention entropy", "", 4, "nats, mean over sentences; 0 looks at one token"),
    "attention_pad_mass": ("attention on pads", "", 4, "0–1, mean over sentences"),
    "sentences": ("sentences", "", 0, "in the test split"),
}
_HEADLINES = ("accuracy", "f1", "nll")


def write_classification_report(
    config: Mapping[str, Any], choices: Mapping[str, str], stages: Stages, into: Path
) -> None:
    """Write `into`/index.html; see `write_page`."""
    labels = read_json(stages.data / "data.json", "prepare", stage_files.LabelInfo)["labels"]
    train = read_json(stages.data / "stats.json", "prepare", stage_files.SentenceStats)["splits"]["train"]
    confusions = read_json(stages.evaluation / "confusions.json", "evaluate", stage_files.Confusions)
    matrix = confusion_matrix(confusions["labels"], confusions["counts"])
    maps = load_maps(stages.evaluation / "attention.npz")
    write_page(
        "classification.html",
        config,
        choices,
        stages,
        into,
        title=[" / ".join(labels), *chosen_names(config, ("model.attention",))],
        known=METRICS,
        headlines=_HEADLINES,
        lengths=length_histogram({"sentences": dict(train["text"]["length_histogram"])}),
        pictures={"confusion_matrix": matrix, "sentences": coloured_sentences(maps)},
        more={
            "confusions": picture(matrix),
            "rows": coloured_rows(maps),
            "samples": sample_predictions(read_lines(stages.evaluation / "predictions.jsonl", stage_files.Predicted)),
        },
    )
