"""The page of an experiment: what was asked, then what came out, with the sections of its task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from attnlab.config.names import readable_name
from attnlab.config.params import as_text, leaves
from attnlab.evaluation.corpus_metric import CorpusMetric
from attnlab.evaluation.evaluation_files import (
    METRICS,
    SIGNATURES,
    read_history,
    read_json,
    write_curves,
)
from attnlab.evaluation.formed_attention import read_formed
from attnlab.evaluation.measures import Measure
from attnlab.files import atomic_folder, write_json
from attnlab.plots.curves import curve_panels
from attnlab.plots.figure import PAGE_DPI, png_bytes
from attnlab.plots.html import render
from attnlab.plots.svg import Chart
from attnlab.project import CONF
from attnlab.report.asked import Asked
from attnlab.report.formed import formed_maps, widest
from attnlab.tasks.report_section import ReportSection

SUMMARY = "summary.json"
_VALIDATIONS = 8  # whose attention is shown
# The columns of the metrics: {the best value: the scale}.
_SCALES = {100.0: "0–100", 1.0: "0–1"}


def write_report(
    config: Mapping[str, Any],
    asked: Asked,
    section: ReportSection,
    own_metrics: Mapping[str, CorpusMetric],
    data: Path,
    training: Path,
    evaluation: Path,
    into: Path,
    folders: tuple[Path, ...] = (CONF,),
) -> None:
    """Write `into`/index.html, whole or not at all; the same inputs give the same bytes.

    Beside the page lie files for programs that compare experiments, such as DVC:
    pictures/<name>.png, curves/<metric>.csv for each learning curve, and summary.json with the
    metrics at the top of the page.

    Args:
        config: the composed experiment, plain values.
        asked: what the run was asked.
        section: of the experiment's task.
        own_metrics: that the config adds, by name.
        data, training, evaluation: what the other stages wrote.
        folders: of configs, that the experiment was composed of.

    Raises:
        ExperimentError: a file is missing, or is no JSON.
    """
    measured = read_json(evaluation / METRICS, "evaluate")
    signatures = read_json(evaluation / SIGNATURES, "evaluate")
    info = read_json(data / "data.json", "prepare")
    stats = read_json(data / "stats.json", "prepare")
    history = read_history(training / "history.csv")
    formed = formed_maps(section, read_formed(training, _VALIDATIONS), history)

    content, figures = section.content(evaluation, stats)
    own_measures = [metric.measure(name) for name, metric in own_metrics.items()]
    metrics = {measure.name: measure for measure in _in_order(section, own_measures, measured)}
    wanted_at_the_top = (*section.headlines, *own_metrics)
    headlines = [metrics[name] for name in wanted_at_the_top if measured.get(name) is not None]

    page = {
        **content,
        "title": asked.title or readable_name(config, folders=folders),
        "measured": measured,
        "metrics": metrics,
        "headlines": headlines,
        "signatures": signatures,
        "scales": _SCALES,
        "asked": asked,
        "seed": config.get("seed"),
        "device": _device(config.get("hardware") or {}),
        "config": [(path, as_text(value)) for path, value in leaves(config)],
        "formed": formed,
        "formed_width": widest(formed),
        "info": info,
        "stats": stats,
        "pictures": _charts(figures),
        "curves": _charts(curve_panels(history)),
    }
    text = render(section.template, page, section.package, "attnlab.report")

    with atomic_folder(into) as folder:
        _write_pictures(figures, folder / "pictures")
        # Programs that compare experiments draw their curves in one chart, from the files.
        write_curves(history, folder / "curves")
        write_json(folder / SUMMARY, _summary(measured, headlines))
        (folder / "index.html").write_text(text, encoding="utf-8", newline="\n")


def _charts(figures: Mapping[str, Figure]) -> dict[str, Chart]:
    return {name: Chart(figure, name) for name, figure in figures.items()}


def _write_pictures(figures: Mapping[str, Figure], folder: Path) -> None:
    folder.mkdir()
    for name, figure in figures.items():
        (folder / f"{name}.png").write_bytes(png_bytes(figure, PAGE_DPI))


def _summary(measured: Mapping[str, Any], headlines: Sequence[Measure]) -> dict[str, Any]:
    """The metrics at the top of the page; all of them where the task names none."""
    if not headlines:
        return dict(measured)
    return {measure.name: measured[measure.name] for measure in headlines}


def _in_order(
    section: ReportSection, own_measures: Sequence[Measure], measured: Mapping[str, Any]
) -> list[Measure]:
    """What is known of the metrics: the described ones first, in their order, then all others."""
    described = (*section.measures, *own_measures)
    present = [measure for measure in described if measure.name in measured]
    their_names = {measure.name for measure in present}
    others = sorted(set(measured) - their_names)
    return present + [section.known.named(name) for name in others]


def _device(hardware: Mapping[str, Any]) -> str:
    """What it ran on: `1 x cpu, 1 thread(s), precision 32`."""
    words = []
    if "accelerator" in hardware:
        words.append(f"{hardware.get('devices', 1)} x {hardware['accelerator']}")
    if "threads" in hardware:
        words.append(f"{hardware['threads']} thread(s)")
    if "precision" in hardware:
        words.append(f"precision {hardware['precision']}")
    return ", ".join(words)
