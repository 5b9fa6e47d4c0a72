"""Figures of a comparison, and the attention of all systems side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

_VALIDATION = ("validation/free_running/{}", "validation/{}", "validation/teacher_forced/{}")
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
    return interval_panels({f"{measure.heading}, test": rows})


def _learning(findings: Findings, measure: Measure) -> Figure | None:
    systems = findings.systems
    there = {
        name
        for system in systems
        for run in system.runs
        for name, points in run.history.items()
        if points
    }

    def validated(*measures: str) -> list[str]:
        return [
            name
            for each in measures
            for form in _VALIDATION
            if (name := form.format(each)) in there
        ][:1]

    panels = {}
    for name in dict.fromkeys(
        [*validated(measure.name, *_BY_LENGTH), *validated("token_nll", "nll")]
    ):
        fed = ", reference fed" if "teacher_forced" in name else ""
        title = f"{findings.measures.named(name.rpartition('/')[2]).heading} (validation{fed})"
        panels[title] = _curves(
            {each: [dict(run.history.get(name, ())) for run in each.runs] for each in systems}
        )
    return seeded_panels(panels, "step") if panels else None


def _by_length(systems: Sequence[System], measures: Measures) -> Figure | None:
    rows = [row for system in systems for run in system.runs for row in run.evaluation.by_length]
    sentences = {(row["from"], row["to"]): row["sentences"] for row in reversed(rows)}
    places = {ends: place for place, ends in enumerate(sorted(sentences))}
    panels = {}
    for name in _BY_LENGTH:
        of_systems = {
            system: [
                {
                    places[row["from"], row["to"]]: row[name]
                    for row in run.evaluation.by_length
                    if name in row
                }
                for run in system.runs
            ]
            for system in systems
        }
        if curves := _curves(of_systems):
            panels[measures.named(name).heading] = curves
    ticks = [f"{range_text(*ends)}\n{sentences[ends]:,}" for ends in places]
    return seeded_panels(panels, _LENGTH_AXIS, ticks) if panels else None


def _curves(of_systems: Mapping[System, Sequence[Mapping[int, float]]]) -> list[SeededCurve]:
    """A curve for each system that was measured, over all places of any seed.

    of_systems: {place: value} for each seed.
    """
    curves = []
    for system, of_seeds in of_systems.items():
        if places := sorted({place for points in of_seeds for place in points}):
            values = np.array(
                [[points.get(place, np.nan) for place in places] for points in of_seeds]
            )
            dashed = system.number // len(COLOURS) % 2 == 1  # where colours repeat
            curves.append(SeededCurve(system.name, places, values, system.number, dashed))
    return curves


def attention_side_by_side(
    systems: Sequence[System], measure: str, count: int
) -> list[dict[str, Any]]:
    """Up to `count` sentences {"source", "reference", "systems"}, in the order of the evaluation.

    Each system shows its median seed: {"name", "seed", "text": its output, "table": a heat map,
    "row": a coloured sentence, "why": the reason where there is neither}.
    """
    medians = {system.name: system.median_run(measure) for system in systems}
    maps = {name: run.section.maps_by_source(run.evaluation) for name, run in medians.items()}
    sources = list(dict.fromkeys(source for of_system in maps.values() for source in of_system))
    shown = []
    for source in sources[:count]:
        of_systems = []
        reference = None
        for name, run in medians.items():
            row = _row_of(run, source)
            reference = reference or row.get("reference")
            drawn = _drawn(run, maps[name].get(source), row)
            of_systems.append(
                {"name": name, "seed": run.seed, "text": None, "table": None, "row": None, **drawn}
            )
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
    if attention is not None:
        return run.section.drawn(attention, row)
    has_maps = bool(run.evaluation.maps)
    why = "It has no map of this sentence." if has_maps else "It has no attention."
    return {"text": row.get(run.section.answer_key), "why": why}
