"""The page of an experiment: choices, data, learning curves, metrics, and the sections of its task."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sacrebleu.metrics import CHRF

from attnlab.evaluation.attention_map import load_maps
from attnlab.files import atomic_folder
from attnlab.plots.attention import coloured_row, coloured_sentences, heat_map, heat_map_table
from attnlab.plots.curves import learning_curves, length_curve
from attnlab.plots.figure import PAGE_DPI, png_bytes
from attnlab.plots.histograms import confusion_matrix, length_histogram, offset_histogram
from attnlab.plots.html import inline_png, render
from attnlab.report.measures import CLASSIFICATION, TRANSLATION, Measure, measure_named
from attnlab.report.stage_files import read_history, read_json, read_lines
from attnlab.tracking.params import choice_name

# What "What was run" shows: paths in the config.
_CHOICES = (
    "data", "data.tokenizer", "padding", "model.encoder", "model.bridge", "model.attention", "model.projection",
    "model.normaliser", "model.scope", "model.coverage", "model.heads", "model.decoder", "model.readout",
    "model.input_feeding", "training.teacher_forcing", "training.batching", "training.optimizer", "training.schedule",
    "search", "hardware", "seed",
)  # fmt: skip
_HEAT_MAPS = 4  # beside the page
_WRONG = 8  # target tokens with wrong links that the page lists


@dataclass(frozen=True)
class Stages:
    """Output folders of the other stages: prepared data, learning curves, evaluation."""

    data: Path
    training: Path
    evaluation: Path


def write_translation_report(config: Mapping[str, Any], choices: Mapping[str, str], stages: Stages, into: Path) -> None:
    """Write the report of a translation; see `_write`."""
    info = read_json(stages.data / "data.json", "prepare")
    train = read_json(stages.data / "stats.json", "prepare")["splits"]["train"]
    by_length, offsets, wrong_links = (
        read_json(stages.evaluation / f"{name}.json", "evaluate")
        for name in ("by_length", "alignment_offsets", "wrong_links")
    )
    maps = load_maps(stages.evaluation / "attention.npz")
    figures = {
        "lengths": length_histogram({side: dict(train[side]["length_histogram"]) for side in ("source", "target")})
    }
    if by_length:
        figures["length_curve"] = length_curve(by_length)
    if offsets:
        figures["offsets"] = offset_histogram({"": offsets})
    languages = [info["source_language"], info["target_language"]]
    content = {
        "title": [*([" → ".join(languages)] if all(languages) else []), *_names(config, "attention", "decoder")],
        "by_length": by_length,
        "samples": sample_translations(read_lines(stages.evaluation / "hypotheses.jsonl")),
        "wrong_links": [row for row in wrong_links if row["wrong"]][:_WRONG],
        "linked_tokens": len(wrong_links),
        "tables": [heat_map_table(each) for each in maps],
    }
    figures |= {f"attention_{number}": heat_map(each) for number, each in enumerate(maps[:_HEAT_MAPS], start=1)}
    headlines = ("bleu", "chrf", "exact_match", "perplexity", "aer")
    _write("translation.html", config, choices, stages, TRANSLATION, headlines, content, figures, into)


def sample_translations(rows: Sequence[dict[str, Any]], count: int = 5) -> dict[str, list[dict[str, Any]]]:
    """{"random", "best", "worst"}: `count` rows each, with their sentence-level chrF2 as `chrf`.

    Random ones come from a fixed seed; the worst never equal their reference. Ties put the longer reference first.
    """
    metric = CHRF()
    scored = [
        {**row, "number": number, "chrf": metric.sentence_score(row["hypothesis"], [row["reference"]]).score}
        for number, row in enumerate(rows, start=1)
    ]
    wrong = [row for row in scored if row["hypothesis"] != row["reference"]]
    return {
        "random": _drawn(scored, count),
        "best": sorted(scored, key=lambda row: (-row["chrf"], -len(row["reference"])))[:count],
        "worst": sorted(wrong, key=lambda row: (row["chrf"], -len(row["reference"])))[:count],
    }


def _drawn(rows: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    return [rows[i] for i in sorted(random.Random(0).sample(range(len(rows)), min(count, len(rows))))]


def write_classification_report(
    config: Mapping[str, Any], choices: Mapping[str, str], stages: Stages, into: Path
) -> None:
    """Write the report of a classifier; see `_write`."""
    labels = read_json(stages.data / "data.json", "prepare")["labels"]
    train = read_json(stages.data / "stats.json", "prepare")["splits"]["train"]
    confusions = read_json(stages.evaluation / "confusions.json", "evaluate")
    maps = load_maps(stages.evaluation / "attention.npz")
    figures = {
        "lengths": length_histogram({"sentences": dict(train["text"]["length_histogram"])}),
        "confusion_matrix": confusion_matrix(confusions["labels"], confusions["counts"]),
        "sentences": coloured_sentences(maps),
    }
    content = {
        "title": [" / ".join(labels), *_names(config, "attention")],
        "rows": [coloured_row(each) for each in maps],
        "samples": sample_predictions(read_lines(stages.evaluation / "predictions.jsonl")),
    }
    headlines = ("accuracy", "f1", "nll")
    _write("classification.html", config, choices, stages, CLASSIFICATION, headlines, content, figures, into)


def sample_predictions(rows: Sequence[dict[str, Any]], count: int = 5) -> dict[str, list[dict[str, Any]]]:
    """{"random", "surest mistakes", "least sure"}: `count` rows each, by the probability of the predictions.

    Random ones come from a fixed seed.
    """
    numbered = [{**row, "number": number} for number, row in enumerate(rows, start=1)]
    wrong = [row for row in numbered if not row["correct"]]
    return {
        "random": _drawn(numbered, count),
        "surest mistakes": sorted(wrong, key=lambda row: -row["probability"])[:count],
        "least sure": sorted(numbered, key=lambda row: row["probability"])[:count],
    }


def _write(
    template: str,
    config: Mapping[str, Any],
    choices: Mapping[str, str],
    stages: Stages,
    known: Sequence[Measure],
    headlines: Sequence[str],
    content: Mapping[str, Any],
    figures: Mapping[str, Figure],
    into: Path,
) -> None:
    """Write `into`/index.html, whole or not at all; the same inputs give the same bytes.

    The figures are also written to `into`/pictures/<name>.png, for programs that show pictures of several experiments
    side by side.

    Args:
        template: of the task, which extends base.html.
        config: the composed experiment, plain values.
        choices: {group: the chosen file}, as shown.
        known: the task's metrics, in the order of the page.
        headlines: the metrics at the top of the page.
        content: variables of the task's template; `title` in parts.
        figures: of the task's template, by name.

    Raises:
        ExperimentError: a file is missing, or is no JSON.
    """
    measured = read_json(stages.evaluation / "metrics.json", "evaluate")
    signatures = read_json(stages.evaluation / "signatures.json", "evaluate")
    curves = learning_curves(read_history(stages.training / "history.csv"))
    figures = {**figures, "curves": curves} if curves is not None else figures
    pictures = {name: png_bytes(figure, PAGE_DPI) for name, figure in figures.items()}
    names = [each.name for each in known if each.name in measured]
    names += sorted(set(measured) - set(names))
    metrics = {name: measure_named(name, known) for name in names}
    page = {
        **content,
        "title": " · ".join(content["title"]) or "experiment",
        "measured": measured,
        "metrics": metrics,
        "headlines": [metrics[name] for name in headlines if measured.get(name) is not None],
        "signatures": signatures,
        "choices": _choices(config, choices),
        "config": flatten(config),
        "info": read_json(stages.data / "data.json", "prepare"),
        "stats": read_json(stages.data / "stats.json", "prepare"),
        "pictures": {name: inline_png(png) for name, png in pictures.items()},
    }
    text = render(template, page, "attnlab.report")
    with atomic_folder(into) as folder:
        (folder / "pictures").mkdir()
        for name, png in pictures.items():
            (folder / "pictures" / f"{name}.png").write_bytes(png)
        (folder / "index.html").write_text(text, encoding="utf-8", newline="\n")


def flatten(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """(dotted path, value) of every leaf, with paths as in command-line overrides."""
    leaves = []
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            leaves.extend(flatten(value, f"{prefix}{key}."))
        else:
            leaves.append((f"{prefix}{key}", as_text(value)))
    return leaves


def as_text(value: Any) -> str:
    """A config value as in YAML: `null`, `true`, text without quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _names(config: Mapping[str, Any], *parts: str) -> list[str]:
    """The names of these choices of the model."""
    return [name for part in parts if (name := choice_name(_at(config, f"model.{part}")))]


def _choices(config: Mapping[str, Any], choices: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row for each choice: its name and its values, without the parts that have their own rows."""
    rows: list[dict[str, Any]] = []
    for path in _CHOICES:
        node, label = _at(config, path), path.rpartition(".")[2]
        if isinstance(node, Mapping):
            # The chosen file, or the class in words where it differs from the section's name.
            of_class = choice_name(node) or ""
            name = choices.get(path.replace(".", "/")) or ("" if of_class == label else of_class)
            own_rows = {other.rpartition(".")[2] for other in _CHOICES if other.startswith(f"{path}.")}
            values = {key: value for key, value in node.items() if key != "_target_" and key not in own_rows}
            rows.append({"label": label, "name": name, "values": flatten(values)})
        elif node is not None or path == "model.attention":
            rows.append({"label": label, "name": "none" if node is None else as_text(node), "values": []})
    return [{**row, "label": row["label"].replace("_", " ")} for row in rows]


def _at(config: Mapping[str, Any], path: str) -> Any:
    node: Any = config
    for key in path.split("."):
        node = node.get(key) if isinstance(node, Mapping) else None
    return node
