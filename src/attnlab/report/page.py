"""The page of an experiment: choices, data, learning curves, metrics, and the sections of its task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from attnlab.files import atomic_folder
from attnlab.plots.curves import learning_curves
from attnlab.plots.figure import PAGE_DPI, png_bytes
from attnlab.plots.html import inline_png, render
from attnlab.report import stage_files
from attnlab.report.stage_files import read_history, read_json
from attnlab.tracking.params import choice_name

# Rows of choices: label, and path in the config.
_CHOICES = (
    ("data", "data"),
    ("tokenizer", "data.tokenizer"),
    ("padding", "padding"),
    ("encoder", "model.encoder"),
    ("bridge", "model.bridge"),
    ("attention", "model.attention"),
    ("projection", "model.projection"),
    ("normaliser", "model.normaliser"),
    ("scope", "model.scope"),
    ("coverage", "model.coverage"),
    ("heads", "model.heads"),
    ("decoder", "model.decoder"),
    ("readout", "model.readout"),
    ("input feeding", "model.input_feeding"),
    ("teacher forcing", "training.teacher_forcing"),
    ("batches", "training.batching"),
    ("optimizer", "training.optimizer"),
    ("schedule", "training.schedule"),
    ("search", "search"),
    ("hardware", "hardware"),
    ("seed", "seed"),
)
Metric = tuple[str, str, int, str]
"""label, ↑ or ↓ for the better direction, digits, meaning"""


@dataclass(frozen=True)
class Stages:
    """Output folders of the other stages: prepared data, learning curves, evaluation."""

    data: Path
    training: Path
    evaluation: Path


def write_page(
    template: str,
    config: Mapping[str, Any],
    choices: Mapping[str, str],
    stages: Stages,
    into: Path,
    *,
    title: Sequence[str],
    known: Mapping[str, Metric],
    headlines: Sequence[str],
    lengths: Figure,
    pictures: Mapping[str, bytes],
    more: Mapping[str, Any],
) -> None:
    """Write `into`/index.html, whole or not at all; the same inputs give the same bytes.

    The histogram, the learning curves and `pictures` are also written to `into`/pictures/<name>.png, for programs that
    show pictures of several experiments side by side.

    Args:
        template: of the task, which extends base.html.
        config: the composed experiment, plain values.
        choices: {group: the chosen file}, as shown.
        title: parts of the title.
        known: the task's metrics, in the order of the page.
        headlines: the metrics at the top of the page.
        lengths: histogram of sentence lengths.
        pictures: PNG files, by name.
        more: variables of the task's template.

    Raises:
        ExperimentError: a file is missing or invalid.
    """
    metrics = read_json(stages.evaluation / "metrics.json", "evaluate", stage_files.Metrics)
    signatures = read_json(stages.evaluation / "signatures.json", "evaluate", stage_files.Signatures)
    drawn = learning_curves(read_history(stages.training / "history.csv"))
    curves = None if drawn is None else png_bytes(drawn, PAGE_DPI)
    histogram = png_bytes(lengths, PAGE_DPI)
    order = [name for name in known if name in metrics] + sorted(set(metrics) - set(known))
    content = {
        "title": " · ".join(title) or "experiment",
        "headlines": [_metric(known, name, metrics[name]) for name in headlines if metrics.get(name) is not None],
        "choices": _choices(config, choices),
        "config": flatten(config),
        "info": read_json(stages.data / "data.json", "prepare", stage_files.AnyObject),
        "stats": read_json(stages.data / "stats.json", "prepare", stage_files.AnyObject),
        "histogram": inline_png(histogram),
        "curves": inline_png(curves) if curves is not None else None,
        "metrics": [{**_metric(known, name, metrics[name]), "signature": signatures.get(name)} for name in order],
        "notes": {name: text for name, text in sorted(signatures.items()) if name not in metrics},
        **more,
    }
    pictures = {"lengths": histogram, **({} if curves is None else {"curves": curves}), **pictures}
    text = render(template, content, "attnlab.report")
    with atomic_folder(into) as folder:
        (folder / "pictures").mkdir()
        for name, png in pictures.items():
            (folder / "pictures" / f"{name}.png").write_bytes(png)
        (folder / "index.html").write_text(text, encoding="utf-8", newline="\n")


def chosen_names(config: Mapping[str, Any], paths: Sequence[str]) -> list[str]:
    """The names of the choices at these paths; empty for a config without a model."""
    names = [choice_name(_at(config, path)) for path in paths if "model" in config]
    return [name for name in names if name]


def flatten(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """(dotted path, value) of every leaf, with paths as in command-line overrides."""
    leaves = []
    for key, value in config.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            leaves.extend(flatten(value, f"{path}."))
        else:
            leaves.append((path, as_text(value)))
    return leaves


def as_text(value: Any) -> str:
    """A config value as in YAML: `null`, `true`, text without quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _choices(config: Mapping[str, Any], choices: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row for each choice: its name and its values, without the parts that have their own rows."""
    rows: list[dict[str, Any]] = []
    for label, path in _CHOICES:
        node = _at(config, path)
        if node is None and path != "model.attention":
            continue
        if node is not None and not isinstance(node, Mapping):
            rows.append({"label": label, "name": as_text(node), "values": []})
            continue
        own_rows = {other.rpartition(".")[2] for _, other in _CHOICES if other.rpartition(".")[0] == path}
        values = {key: value for key, value in (node or {}).items() if key != "_target_" and key not in own_rows}
        rows.append({"label": label, "name": _name(path, node, choices), "values": flatten(values)})
    return rows


def _name(path: str, node: Any, choices: Mapping[str, str]) -> str:
    """The chosen file, or the class in words where it differs from the section's name."""
    noted = choices.get(path.replace(".", "/"))
    if noted is not None:
        return noted
    of_class = choice_name(node) or ""
    return "" if of_class == path.rpartition(".")[2] else of_class


def _at(config: Mapping[str, Any], path: str) -> Any:
    node: Any = config
    for key in path.split("."):
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def _metric(known: Mapping[str, Metric], name: str, value: float | None) -> dict[str, Any]:
    label, better, digits, meaning = known.get(name, (name, "", 4, ""))
    shown = "–" if value is None else f"{value:,.{digits}f}"
    return {"label": label, "better": better, "value": shown, "meaning": meaning}
