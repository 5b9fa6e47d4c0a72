"""The page of an experiment: choices, data, learning curves, metrics, and sections of its task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.config.names import readable_name
from attnlab.config.params import as_text, choice_name, leaves, value_at
from attnlab.evaluation.corpus_metric import CorpusMetric
from attnlab.evaluation.evaluation_files import (
    METRICS,
    SIGNATURES,
    read_history,
    read_json,
    write_curves,
)
from attnlab.evaluation.measures import Measure
from attnlab.files import atomic_folder, write_json
from attnlab.plots.curves import learning_curves
from attnlab.plots.figure import PAGE_DPI, png_bytes
from attnlab.plots.html import inline_png, render
from attnlab.tasks.report_section import ReportSection

SUMMARY = "summary.json"
# What "What was run" shows: paths in the config.
_CHOICES = (
    "data", "data.tokenizer", "padding", "model.encoder", "model.bridge", "model.attention",
    "model.projection", "model.normaliser", "model.scope", "model.coverage", "model.heads",
    "model.decoder", "model.readout", "model.input_feeding", "model.initialisation",
    "training.teacher_forcing", "training.batching", "training.optimizer", "training.schedule",
    "search", "hardware", "seed",
)  # fmt: skip


def write_report(
    config: Mapping[str, Any],
    choices: Mapping[str, str],
    section: ReportSection,
    own_metrics: Mapping[str, CorpusMetric],
    data: Path,
    training: Path,
    evaluation: Path,
    into: Path,
) -> None:
    """Write `into`/index.html, whole or not at all; the same inputs give the same bytes.

    Beside the page lie files for programs that compare experiments, such as DVC:
    pictures/<name>.png, curves/<metric>.csv for each learning curve, and summary.json with the
    metrics at the top of the page.

    Args:
        config: the composed experiment, plain values.
        choices: {group: the chosen file}, as shown.
        section: of the experiment's task.
        own_metrics: that the config adds, by name.
        data, training, evaluation: what the other stages wrote.

    Raises:
        ExperimentError: a file is missing, or is no JSON.
    """
    measured = read_json(evaluation / METRICS, "evaluate")
    signatures = read_json(evaluation / SIGNATURES, "evaluate")
    info = read_json(data / "data.json", "prepare")
    stats = read_json(data / "stats.json", "prepare")

    content, figures = section.content(evaluation, stats)
    pictures = {name: png_bytes(figure, PAGE_DPI) for name, figure in figures.items()}
    inline_pictures = {name: inline_png(png) for name, png in pictures.items()}

    # Programs that compare experiments draw their curves in one chart, from the files.
    history = read_history(training / "history.csv")
    curves = learning_curves(history)
    if curves is not None:
        inline_pictures["curves"] = inline_png(png_bytes(curves, PAGE_DPI))

    own = {name: metric.measure(name) for name, metric in own_metrics.items()}
    metrics = {measure.name: measure for measure in _in_order(section, own, measured)}
    headlines = [name for name in (*section.headlines, *own) if measured.get(name) is not None]
    page = {
        **content,
        "title": readable_name(config),
        "measured": measured,
        "metrics": metrics,
        "headlines": [metrics[name] for name in headlines],
        "signatures": signatures,
        "choices": _choices(config, choices),
        "config": _shown(config),
        "info": info,
        "stats": stats,
        "pictures": inline_pictures,
    }
    text = render(section.template, page, section.package, "attnlab.report")

    with atomic_folder(into) as folder:
        (folder / "pictures").mkdir()
        for name, png in pictures.items():
            (folder / "pictures" / f"{name}.png").write_bytes(png)
        write_curves(history, folder / "curves")
        write_json(folder / SUMMARY, _summary(measured, headlines))
        (folder / "index.html").write_text(text, encoding="utf-8", newline="\n")


def _summary(measured: Mapping[str, Any], headlines: Sequence[str]) -> dict[str, Any]:
    """The metrics at the top of the page; all of them where the task names none."""
    return {name: measured[name] for name in headlines or measured}


def _in_order(
    section: ReportSection, own: Mapping[str, Measure], measured: Mapping[str, Any]
) -> list[Measure]:
    """What is known of the metrics: the described ones first, in their order, then all others."""
    described = (*section.measures, *own.values())
    present = [measure for measure in described if measure.name in measured]
    their_names = {measure.name for measure in present}
    others = [section.known.named(name) for name in sorted(set(measured) - their_names)]
    return present + others


def _shown(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(dotted path, value as text) of each setting."""
    return [(path, as_text(value)) for path, value in leaves(config)]


def _choices(config: Mapping[str, Any], choices: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row for each choice: its name and its values.

    The parts that have their own rows are left out of the values.
    """
    rows: list[dict[str, Any]] = []
    for path in _CHOICES:
        node = value_at(config, path)
        section = path.rpartition(".")[2]
        if node is None and path != "model.attention":
            continue

        label = section.replace("_", " ")
        if not isinstance(node, Mapping):
            name = "none" if node is None else as_text(node)
            rows.append({"label": label, "name": name, "values": []})
            continue

        # The chosen file, or the class in words where it differs from the section's name.
        name = choices.get(path.replace(".", "/"), "")
        class_in_words = choice_name(node) or ""
        if not name and class_in_words != section:
            name = class_in_words
        own_rows = {other.rpartition(".")[2] for other in _CHOICES if other.startswith(f"{path}.")}
        hidden = {"_target_", "_partial_", *own_rows}
        values = {key: value for key, value in node.items() if key not in hidden}
        rows.append({"label": label, "name": name, "values": _shown(values)})
    return rows
