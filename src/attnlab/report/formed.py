"""Small maps in a row that show how the attention of a sentence formed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.heat_map import HeatMap
from attnlab.report.validations import first_validated
from attnlab.tasks.report_section import ReportSection

# In pixels: the least side of a cell, and what stands beside the cells. The type is smaller than in
# the other maps, and its labels narrower.
CELL = 16
_MARGIN = 8
LABEL_SHARE = 0.8

Points = Sequence[tuple[int, float]]


@dataclass(frozen=True, eq=False)
class FormedMap:
    """The attention of a sentence at a validation.

    title: the sentence, and what the model made of it.
    measured: `BLEU 31.20`; empty where the validation measured nothing.
    heat_map: None for a sentence that is coloured instead.
    row: the coloured sentence.
    """

    step: int
    title: str
    measured: str
    heat_map: HeatMap | None
    row: Mapping[str, Any] | None


def formed_maps(
    section: ReportSection,
    validations: Sequence[tuple[int, AttentionMap]],
    history: Mapping[str, Points],
) -> list[FormedMap]:
    """What the page shows of (step, map of the sentence), with the measure that ranks systems."""
    wanted = (*section.ranked_by, *section.headlines)
    logged = first_validated(wanted, [name for name, points in history.items() if points])
    maps = []
    for step, attention in validations:
        drawn = section.drawn(attention, {})
        each = FormedMap(
            step=step,
            title=attention.title,
            measured=_measured(section, logged, history, step),
            heat_map=drawn.get("heat_map"),
            row=drawn.get("row"),
        )
        maps.append(each)
    return maps


def _measured(
    section: ReportSection, logged: str | None, history: Mapping[str, Points], step: int
) -> str:
    value = dict(history.get(logged or "", ())).get(step)
    if logged is None or value is None:
        return ""
    measure = section.known.named(logged.rpartition("/")[2])
    return f"{measure.label} {measure.shown(value)}"


def widest(maps: Sequence[FormedMap]) -> int:
    """Pixels that each of the maps has room in, with cells of the least size."""
    widths = [0]
    for each in maps:
        if each.heat_map is not None:
            cells = CELL * len(each.heat_map.source)
            widths.append(cells + round(LABEL_SHARE * each.heat_map.label_width) + _MARGIN)
    return max(widths)
