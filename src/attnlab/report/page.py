"""The page of an experiment: choices, data, learning curves, metrics, and sections of its task."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sacrebleu.metrics import CHRF

from attnlab.config.names import readable_name
from attnlab.config.params import as_text, choice_name, leaves, value_at
from attnlab.evaluation.attention_map import load_maps
from attnlab.files import atomic_folder
from attnlab.plots.attention import coloured_row, coloured_sentences, heat_map, heat_map_table
from attnlab.plots.curves import learning_curves, length_curve
from attnlab.plots.figure import PAGE_DPI, png_bytes
from attnlab.plots.histograms import confusion_matrix, length_histogram, offset_histogram
from attnlab.plots.html import inline_png, render
from attnlab.report.compared_runs import read_history, read_json, read_lines
from attnlab.report.measures import CLASSIFICATION, TRANSLATION, measure_named

# What "What was run" shows: paths in the config.
_CHOICES = (
    "data", "data.tokenizer", "padding", "model.encoder", "model.bridge", "model.attention",
    "model.projection", "model.normaliser", "model.scope", "model.coverage", "model.heads",
    "model.decoder", "model.readout", "model.input_feeding", "model.initialisation",
    "training.teacher_forcing", "training.batching", "training.optimizer", "training.schedule",
    "search", "hardware", "seed",
)  # fmt: skip
_HEADLINES = (
    "bleu",
    "chrf",
    "rouge1",
    "rouge2",
    "rougeL",
    "exact_match",
    "perplexity",
    "aer",
    "accuracy",
    "f1",
    "nll",
)
_HEAT_MAPS = 4  # beside the page


def write_report(
    config: Mapping[str, Any],
    choices: Mapping[str, str],
    data: Path,
    training: Path,
    evaluation: Path,
    into: Path,
) -> None:
    """Write `into`/index.html, whole or not at all; the same inputs give the same bytes.

    The figures are also written to `into`/pictures/<name>.png, for programs that show pictures of
    several experiments side by side.

    Args:
        config: the composed experiment, plain values.
        choices: {group: the chosen file}, as shown.
        data, training, evaluation: what the other stages wrote.

    Raises:
        ExperimentError: a file is missing, or is no JSON.
    """
    measured = read_json(evaluation / "metrics.json", "evaluate")
    signatures = read_json(evaluation / "signatures.json", "evaluate")
    info = read_json(data / "data.json", "prepare")
    stats = read_json(data / "stats.json", "prepare")
    translates = (evaluation / "hypotheses.jsonl").is_file()
    task, known = ("translation", TRANSLATION) if translates else ("classification", CLASSIFICATION)
    added = _of_translation if translates else _of_classification
    content, figures = added(config, evaluation, info, stats["splits"]["train"])
    curves = learning_curves(read_history(training / "history.csv"))
    if curves is not None:
        figures["curves"] = curves
    pictures = {name: png_bytes(figure, PAGE_DPI) for name, figure in figures.items()}
    names = [each.name for each in known if each.name in measured]
    names += sorted(set(measured) - set(names))
    metrics = {name: measure_named(name, known) for name in names}
    page = {
        **content,
        "title": readable_name(config),
        "measured": measured,
        "metrics": metrics,
        "headlines": [metrics[name] for name in _HEADLINES if measured.get(name) is not None],
        "signatures": signatures,
        "choices": _choices(config, choices),
        "config": _shown(config),
        "info": info,
        "stats": stats,
        "pictures": {name: inline_png(png) for name, png in pictures.items()},
    }
    text = render(f"{task}.html", page, "attnlab.report")
    with atomic_folder(into) as folder:
        (folder / "pictures").mkdir()
        for name, png in pictures.items():
            (folder / "pictures" / f"{name}.png").write_bytes(png)
        (folder / "index.html").write_text(text, encoding="utf-8", newline="\n")


# What the page of a task adds: variables of its template, and figures by name.
Added = tuple[dict[str, Any], dict[str, Figure]]


def _of_translation(config: Mapping[str, Any], evaluation: Path, info: Any, train: Any) -> Added:
    by_length = read_json(evaluation / "by_length.json", "evaluate")
    offsets = read_json(evaluation / "alignment_offsets.json", "evaluate")
    wrong_links = read_json(evaluation / "wrong_links.json", "evaluate")
    maps = load_maps(evaluation / "attention.npz")

    lengths = {side: dict(train[side]["length_histogram"]) for side in ("source", "target")}
    figures = {"lengths": length_histogram(lengths)}
    if by_length:
        figures["length_curve"] = length_curve(by_length)
    if offsets:
        figures["offsets"] = offset_histogram(offsets)
    for number, each in enumerate(maps[:_HEAT_MAPS], start=1):
        figures[f"attention_{number}"] = heat_map(each)
    content = {
        "by_length": by_length,
        "samples": sample_translations(read_lines(evaluation / "hypotheses.jsonl")),
        "wrong_links": [row for row in wrong_links if row["wrong"]][:8],
        "linked_tokens": len(wrong_links),
        "tables": [heat_map_table(each) for each in maps],
    }
    return content, figures


def sample_translations(
    rows: Sequence[dict[str, Any]], count: int = 5
) -> dict[str, list[dict[str, Any]]]:
    """{"random", "best", "worst"}: `count` rows each, with their sentence-level chrF2 as `chrf`.

    Random ones come from a fixed seed; the worst never equal their reference. Ties put the longer
    reference first.
    """
    metric = CHRF()
    scored = []
    for number, row in enumerate(rows, start=1):
        chrf = metric.sentence_score(row["hypothesis"], [row["reference"]]).score
        scored.append({**row, "number": number, "chrf": chrf})
    wrong = [row for row in scored if row["hypothesis"] != row["reference"]]

    best_first = sorted(scored, key=lambda row: (-row["chrf"], -len(row["reference"])))
    worst_first = sorted(wrong, key=lambda row: (row["chrf"], -len(row["reference"])))
    return {
        "random": _drawn(scored, count),
        "best": best_first[:count],
        "worst": worst_first[:count],
    }


def _drawn(rows: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The same few rows each time, in their order."""
    chosen = random.Random(0).sample(range(len(rows)), min(count, len(rows)))
    return [rows[number] for number in sorted(chosen)]


def _of_classification(config: Mapping[str, Any], evaluation: Path, info: Any, train: Any) -> Added:
    confusions = read_json(evaluation / "confusions.json", "evaluate")
    maps = load_maps(evaluation / "attention.npz")
    figures = {
        "lengths": length_histogram({"sentences": dict(train["text"]["length_histogram"])}),
        "confusion_matrix": confusion_matrix(confusions["labels"], confusions["counts"]),
        "sentences": coloured_sentences(maps),
    }
    content = {
        "rows": [coloured_row(each) for each in maps],
        "samples": sample_predictions(read_lines(evaluation / "predictions.jsonl")),
    }
    return content, figures


def sample_predictions(
    rows: Sequence[dict[str, Any]], count: int = 5
) -> dict[str, list[dict[str, Any]]]:
    """`count` sample rows of each kind: "random", "surest mistakes", "least sure".

    The last two are chosen by the probability of the predictions. Random ones come from a fixed
    seed.
    """
    numbered = [{**row, "number": number} for number, row in enumerate(rows, start=1)]
    wrong = [row for row in numbered if not row["correct"]]
    surest_first = sorted(wrong, key=lambda row: -row["probability"])
    least_sure_first = sorted(numbered, key=lambda row: row["probability"])
    return {
        "random": _drawn(numbered, count),
        "surest mistakes": surest_first[:count],
        "least sure": least_sure_first[:count],
    }


def _shown(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(path, as_text(value)) for path, value in leaves(config)]


def _choices(config: Mapping[str, Any], choices: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row for each choice: its name and its values.

    The parts that have their own rows are left out of the values.
    """
    rows: list[dict[str, Any]] = []
    for path in _CHOICES:
        node, section = value_at(config, path), path.rpartition(".")[2]
        if node is None and path != "model.attention":
            continue

        label = section.replace("_", " ")
        if not isinstance(node, Mapping):
            name = "none" if node is None else as_text(node)
            rows.append({"label": label, "name": name, "values": []})
            continue

        # The chosen file, or the class in words where it differs from the section's name.
        name = choices.get(path.replace(".", "/")) or choice_name(node) or ""
        if name == section:
            name = choices.get(path.replace(".", "/"), "")
        own_rows = {other.rpartition(".")[2] for other in _CHOICES if other.startswith(f"{path}.")}
        hidden = {"_target_", *own_rows}
        values = {key: value for key, value in node.items() if key not in hidden}
        rows.append({"label": label, "name": name, "values": _shown(values)})
    return rows
