"""Figures of a comparison, and the attention of all systems side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.evaluation.measures import Measure, Measures
from attnlab.plots.curves import range_text
from attnlab.plots.figure import COLOURS
from attnlab.plots.systems import SeededCurve, SystemInterval, interval_panels, seeded_panels
from attnlab.report.compared_runs import ComparedRun, System
from attnlab.report.findings import Findings

# The logged names of a validation's measure, the preferred one first.
_VALIDATION = ("validation/free_running/{}", "validation/{}", "validation/teacher_forced/{}")
# Measures that evaluations have by source length.
_BY_LENGTH = ("bleu", "exact_match", "accuracy")
_LENGTH_AXIS = "source tokens, <eos> not counted; below, how many sentences"


def figures_of(findings: Findings) -> dict[str, Figure]:
    """{file name without suffix: figure}, without empty figures."""
    measure = findings.measures.named(findings.wanted.measure)
    drawn = {
        "systems": _intervals(findings, measure),
        "learning": _learning(findings, measure),
        "length": _by_length(findings.systems, findings.measures),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def _intervals(findings: Findings, measure: Measure) -> Figure:
    """The test values of each system's seeds, their mean and its interval."""
    rows = []
    for system in findings.systems:
        found = findings.estimates[measure.name][system.name]
        values = [value * measure.factor for value in system.measured(measure.name)]
        row = SystemInterval(
            label=system.name,
            values=values,
            mean=found.mean * measure.factor,
            low=_scaled(found.low, measure),
            high=_scaled(found.high, measure),
            note=findings.letters[measure.name].get(system.name, ""),
            number=system.number,
        )
        rows.append(row)
    return interval_panels({f"{measure.heading}, test": rows})


def _scaled(value: float | None, measure: Measure) -> float | None:
    return None if value is None else value * measure.factor


def _learning(findings: Findings, measure: Measure) -> Figure | None:
    """Validations over the steps: of the quality and of the loss; None where neither was logged."""
    logged = _logged_metrics(findings.systems)
    quality = _first_validated([measure.name, *_BY_LENGTH], logged)
    loss = _first_validated(["token_nll", "nll"], logged)

    panels = {}
    for name in dict.fromkeys([quality, loss]):  # the wanted measure may be the loss
        if name is None:
            continue
        heading = findings.measures.named(name.rpartition("/")[2]).heading
        fed = ", reference fed" if "teacher_forced" in name else ""
        points = {}
        for system in findings.systems:
            points[system] = [dict(run.history.get(name, ())) for run in system.runs]
        panels[f"{heading} (validation{fed})"] = _curves(points)
    return seeded_panels(panels, "step") if panels else None


def _logged_metrics(systems: Sequence[System]) -> set[str]:
    """The names of the metrics that any run has logged."""
    logged = set()
    for system in systems:
        for run in system.runs:
            logged |= {name for name, points in run.history.items() if points}
    return logged


def _first_validated(measures: Sequence[str], logged: Collection[str]) -> str | None:
    """The logged name of the first of these measures that validations have."""
    for measure in measures:
        for form in _VALIDATION:
            name = form.format(measure)
            if name in logged:
                return name
    return None


def _by_length(systems: Sequence[System], measures: Measures) -> Figure | None:
    """Test measures by source length; None where no run has them."""
    # {(from, to): number of sentences} of each range of lengths. Where test sets differ, the number
    # is that of the first run.
    sentences: dict[tuple[int, int], int] = {}
    for system in systems:
        for run in system.runs:
            for row in run.evaluation.by_length:
                sentences.setdefault((row["from"], row["to"]), row["sentences"])
    ranges = sorted(sentences)
    places = {ends: place for place, ends in enumerate(ranges)}

    panels = {}
    for name in _BY_LENGTH:
        points = {}
        for system in systems:
            points[system] = [_points_by_length(run, name, places) for run in system.runs]
        curves = _curves(points)
        if curves:
            panels[measures.named(name).heading] = curves
    ticks = [f"{range_text(*ends)}\n{sentences[ends]:,}" for ends in ranges]
    return seeded_panels(panels, _LENGTH_AXIS, ticks) if panels else None


def _points_by_length(
    run: ComparedRun, measure: str, places: Mapping[tuple[int, int], int]
) -> dict[int, float]:
    """{place of a range of lengths: the run's value of the measure}."""
    points = {}
    for row in run.evaluation.by_length:
        if measure in row:
            points[places[row["from"], row["to"]]] = row[measure]
    return points


def _curves(points: Mapping[System, Sequence[Mapping[int, float]]]) -> list[SeededCurve]:
    """A curve for each system that was measured, over all places of any seed.

    points: of each system {place on the x axis: value} for each seed.
    """
    curves = []
    for system, of_seeds in points.items():
        places = sorted({place for of_seed in of_seeds for place in of_seed})
        if not places:
            continue
        # NaN leaves a gap where a seed has no value.
        values = np.full((len(of_seeds), len(places)), np.nan)
        for seed, of_seed in enumerate(of_seeds):
            values[seed] = [of_seed.get(place, np.nan) for place in places]
        is_dashed = system.number // len(COLOURS) % 2 == 1  # where colours repeat
        curves.append(SeededCurve(system.name, places, values, system.number, is_dashed))
    return curves


def attention_side_by_side(
    systems: Sequence[System], measure: str, count: int
) -> list[dict[str, Any]]:
    """Up to `count` sentences {"source", "reference", "systems"}, in the order of the evaluation.

    Each system shows its median seed: {"name", "seed", "text": its output, "heat_map",
    "row": a coloured sentence, "why": the reason where there is neither}.
    """
    medians = {system.name: system.median_run(measure) for system in systems}
    maps = {name: run.section.maps_by_source(run.evaluation) for name, run in medians.items()}
    all_sources = [source for of_system in maps.values() for source in of_system]
    sources = list(dict.fromkeys(all_sources))
    shown = []
    for source in sources[:count]:
        of_systems = []
        reference = None
        for name, run in medians.items():
            row = _row_of(run, source)
            reference = reference or row.get("reference")
            drawn = _drawn(run, maps[name].get(source), row)
            empty = {"text": None, "heat_map": None, "row": None}
            of_systems.append({"name": name, "seed": run.seed, **empty, **drawn})
        shown.append({"source": source, "reference": reference, "systems": of_systems})
    return shown


def _row_of(run: ComparedRun, source: str) -> Mapping[str, Any]:
    """What a run made of a source; {} where it was not tested on it."""
    for row in run.evaluation.sentences:
        if row[run.section.source_key] == source:
            return row
    return {}


def _drawn(
    run: ComparedRun, attention: AttentionMap | None, row: Mapping[str, Any]
) -> dict[str, Any]:
    """What a run shows of a sentence: its attention, or its output and why there is no map."""
    if attention is not None:
        return run.section.drawn(attention, row)
    has_maps = bool(run.evaluation.maps)
    why = "It has no map of this sentence." if has_maps else "It has no attention."
    return {"text": row.get(run.section.answer_key), "why": why}
