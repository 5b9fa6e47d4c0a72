"""The page of a classifier: confusion matrix, coloured sentences, and sample sentences."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.evaluation.attention_map import load_maps
from attnlab.plots.confusion_matrix import confusion_matrix
from attnlab.plots.figure import PAGE_DPI, png_bytes
from attnlab.plots.histograms import length_histogram
from attnlab.plots.html import inline_png
from attnlab.plots.sentences import coloured_rows, coloured_sentences
from attnlab.report import stage_files
from attnlab.report.page import Metric, Stages, chosen_names, write_page
from attnlab.report.stage_files import read_json, read_lines

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
    matrix = png_bytes(confusion_matrix(confusions["labels"], confusions["counts"]), PAGE_DPI)
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
        pictures={"confusion_matrix": matrix, "sentences": png_bytes(coloured_sentences(maps))},
        more={
            "confusions": inline_png(matrix),
            "rows": coloured_rows(maps),
            "samples": sample_predictions(read_lines(stages.evaluation / "predictions.jsonl", stage_files.Predicted)),
        },
    )


def sample_predictions(rows: Sequence[dict[str, Any]], count: int = 5) -> dict[str, list[dict[str, Any]]]:
    """{"random", "surest mistakes", "least sure"}: `count` rows each, by the probability of the predictions.

    Random ones come from a fixed seed.
    """
    everywhere = range(len(rows))
    wrong = [index for index, row in enumerate(rows) if not row["correct"]]
    chosen = {
        "random": sorted(random.Random(0).sample(everywhere, min(count, len(rows)))),
        "surest mistakes": sorted(wrong, key=lambda i: (-rows[i]["probability"], i))[:count],
        "least sure": sorted(everywhere, key=lambda i: (rows[i]["probability"], i))[:count],
    }
    return {name: [{**rows[i], "number": i + 1} for i in indices] for name, indices in chosen.items()}
