"""The attention of every system for the same sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.heat_map_html import heat_map_tables
from attnlab.plots.sentences_html import coloured_rows
from attnlab.report.comparison.evaluation_files import EvaluationFiles
from attnlab.report.comparison.systems import System

_ARROW = " → "  # in a translation's map, between the source and what was written


def attention_side_by_side(systems: Sequence[System], measure: str, count: int) -> list[dict[str, Any]]:
    """Up to `count` sentences {"source", "reference", "systems"}, in the order of the evaluation.

    Each system shows its median seed: {"name", "seed", "text": what it made of the sentence, "table": a heat map,
    "row": a coloured sentence, "why": why there is neither}.
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
    """{the source's text: its map}; tokens would not do, for systems may cut texts into other ones."""
    sources = {row["source" if evaluation.translates else "text"] for row in evaluation.sentences}
    found: dict[str, AttentionMap] = {}
    for each in evaluation.maps:
        text = _source(each, sources) if evaluation.translates else None
        found.setdefault(text or " ".join(token for token in each.source_tokens if token != "<eos>"), each)
    return found


def _source(attention: AttentionMap, sources: set[str]) -> str | None:
    """The longest source that the title begins with: an arrow may stand in a source, too."""
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
