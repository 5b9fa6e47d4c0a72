"""Figures of a comparison, and the attention of all systems side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.figure import colour_of, legend_text, repeats
from attnlab.plots.heat_map import heat_map_tables
from attnlab.plots.seeded_curves import SeededCurve, seeded_panels
from attnlab.plots.sentences import coloured_rows
from attnlab.plots.systems import SystemCost, SystemInterval, cost_scatter, interval_figure
from attnlab.report.compared_runs import EvaluationFiles, System
from attnlab.report.findings import Findings
from attnlab.report.measures import Measure, measure_named

_VALIDATION = ("validation/free_running/{}", "validation/{}", "validation/teacher_forced/{}")
_BY_LENGTH = ("bleu", "exact_match", "accuracy")
_LENGTH_AXIS = "source tokens, <eos> not counted; below, how many sentences"


def figures_of(findings: Findings) -> dict[str, Figure]:
    """{file name without suffix: figure}, without empty figures."""
    measure = measure_named(findings.wanted.measure)
    drawn = {
        "systems": _intervals(findings, measure),
        "learning": _learning(findings.systems, measure),
        "length": _by_length(findings.systems),
        "cost": _cost(findings.systems, measure),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def axis_of(measure: Measure) -> str:
    return f"{measure.label} {measure.better}".strip()


def _intervals(findings: Findings, measure: Measure) -> Figure:
    rows = []
    for system in findings.systems:
        found = findings.estimates[measure.name][system.name]
        rows.append(
            SystemInterval(
                label=system.name,
                values=[value * measure.factor for value in system.measured(measure.name)],
                mean=found.mean * measure.factor,
                low=None if found.low is None else found.low * measure.factor,
                high=None if found.high is None else found.high * measure.factor,
                note=findings.letters[measure.name].get(system.name, ""),
                number=system.number,
            )
        )
    return interval_figure(rows, f"{axis_of(measure)}, test")


def _learning(systems: Sequence[System], measure: Measure) -> Figure | None:
    there = {name for system in systems for run in system.runs for name, points in run.history.items() if points}
    panels: dict[str, list[SeededCurve]] = {}
    quality = next((name for wanted in (measure.name, *_BY_LENGTH) if (name := _validated(wanted, there))), None)
    loss = next((name for wanted in ("token_nll", "nll") if (name := _validated(wanted, there))), None)
    for name in dict.fromkeys(filter(None, (quality, loss))):
        label = axis_of(measure_named(name.rpartition("/")[2]))
        fed = ", reference fed" if "teacher_forced" in name else ""
        panels[f"{label} (validation{fed})"] = [
            _curve(system, [dict(run.history.get(name, ())) for run in system.runs])
            for system in systems
            if any(run.history.get(name) for run in system.runs)
        ]
    return seeded_panels(panels, "step") if panels else None


def _validated(measure: str, there: set[str]) -> str | None:
    return next((name for form in _VALIDATION if (name := form.format(measure)) in there), None)


def _by_length(systems: Sequence[System]) -> Figure | None:
    sentences: dict[tuple[int, int], int] = {}
    for run in (run for system in systems for run in system.runs):
        for row in run.evaluation.by_length:
            sentences.setdefault((row["from"], row["to"]), row["sentences"])
    ranges = sorted(sentences)
    panels: dict[str, list[SeededCurve]] = {}
    for name in _BY_LENGTH:
        values = {
            system.name: [
                {ranges.index((row["from"], row["to"])): row[name] for row in run.evaluation.by_length if name in row}
                for run in system.runs
            ]
            for system in systems
        }
        curves = [_curve(system, values[system.name]) for system in systems if any(values[system.name])]
        if curves:
            panels[axis_of(measure_named(name))] = curves
    ticks = [f"{low if low == high else f'{low}–{high}'}\n{sentences[low, high]:,}" for low, high in ranges]
    return seeded_panels(panels, _LENGTH_AXIS, ticks) if panels else None


def _curve(system: System, of_seeds: Sequence[Mapping[int, float]]) -> SeededCurve:
    """A curve over all places of any seed. of_seeds: {place: value} for each seed."""
    places = sorted({place for points in of_seeds for place in points})
    values = np.array([[points.get(place, np.nan) for place in places] for points in of_seeds])
    dashed = repeats(system.number) % 2 == 1
    return SeededCurve(legend_text(system.name), places, values, colour_of(system.number), dashed)


def _cost(systems: Sequence[System], measure: Measure) -> Figure | None:
    cost = measure_named("cpu_seconds")
    points = []
    for system in systems:
        both = [run.measured for run in system.runs if {measure.name, cost.name} <= set(run.measured)]
        if both:
            costs, values = ([measured[each.name] * each.factor for measured in both] for each in (cost, measure))
            points.append(SystemCost(system.name, costs, values, system.number))
    if not points or measure.name == cost.name:
        return None
    return cost_scatter(points, f"{cost.label} of training", f"{axis_of(measure)}, test")


_ARROW = " → "  # separates source and hypothesis in a map's title


def attention_side_by_side(systems: Sequence[System], measure: str, count: int) -> list[dict[str, Any]]:
    """Up to `count` sentences {"source", "reference", "systems"}, in the order of the evaluation.

    Each system shows its median seed: {"name", "seed", "text": its output, "table": a heat map, "row": a coloured
    sentence, "why": the reason where there is neither}.
    """
    medians = {system.name: system.median_run(measure) for system in systems}
    maps = {name: _by_source(run.evaluation) for name, run in medians.items()}
    sentences = list(dict.fromkeys(source for of_system in maps.values() for source in of_system))[:count]
    shown = []
    for source in sentences:
        rows = {name: _sentence(run.evaluation, source) for name, run in medians.items()}
        reference = next((row["reference"] for row in rows.values() if row and "reference" in row), None)
        of_systems = [
            {
                "name": name,
                "seed": run.seed,
                **_drawn(maps[name].get(source), run.evaluation, rows[name] or {}),
            }
            for name, run in medians.items()
        ]
        shown.append({"source": source, "reference": reference, "systems": of_systems})
    return shown


def _by_source(evaluation: EvaluationFiles) -> dict[str, AttentionMap]:
    """{the source's text: its map}; not its tokens, because systems may tokenise differently."""
    sources = {row["source" if evaluation.translates else "text"] for row in evaluation.sentences}
    found: dict[str, AttentionMap] = {}
    for each in evaluation.maps:
        text = _source(each, sources) if evaluation.translates else None
        found.setdefault(text or " ".join(token for token in each.source_tokens if token != "<eos>"), each)
    return found


def _source(attention: AttentionMap, sources: set[str]) -> str | None:
    """The longest source that the title begins with; a source may contain an arrow, too."""
    parts = attention.title.split(_ARROW)
    beginnings = (_ARROW.join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
    return next((text for text in beginnings if text in sources), None)


def _sentence(evaluation: EvaluationFiles, source: str) -> dict[str, Any] | None:
    key = "source" if evaluation.translates else "text"
    return next((row for row in evaluation.sentences if row[key] == source), None)


def _drawn(attention: AttentionMap | None, evaluation: EvaluationFiles, row: dict[str, Any]) -> dict[str, Any]:
    text = row.get("hypothesis", row.get("prediction"))
    if attention is None:
        why = "It has no map of this sentence." if evaluation.maps else "It has no attention."
        return {"text": text, "table": None, "row": None, "why": why}
    if evaluation.translates:
        return {"text": text, "table": heat_map_tables([replace(attention, title="")])[0], "row": None, "why": ""}
    return {"text": None, "table": None, "row": coloured_rows([attention])[0], "why": ""}
