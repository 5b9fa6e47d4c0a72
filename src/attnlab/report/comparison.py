"""The page of a comparison, and the files beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.config.paths import COMPARISON, check_replaceable
from attnlab.files import atomic_folder
from attnlab.plots.figure import PAGE_DPI, png_bytes
from attnlab.plots.html import inline_png, render
from attnlab.report.compared_runs import ComparedRuns
from attnlab.report.comparison_figures import attention_side_by_side, figures_of
from attnlab.report.comparison_tables import (
    heading,
    letters_sentence,
    markdown,
    mean_and_std,
    measures_shown,
    notes,
    p_shown,
    percent,
    ranking,
    write_runs,
    write_systems,
)
from attnlab.report.findings import Findings, Pair
from attnlab.report.measures import Measure, in_order, measure_named

PAGE = "index.html"


def write_comparison(compared: ComparedRuns, findings: Findings, into: Path, sentences: int) -> None:
    """Write the folder, whole or not at all; the same runs give the same bytes.

    index.html      the page, with its figures inside
    comparison.csv  a row for each run
    systems.csv     a row for each system and measure
    comparison.md   the ranking, as Markdown
    *.png           the figures

    sentences: how many show their attention, at most.

    Raises:
        ExperimentError: the folder exists and holds something else.
    """
    check_into(into)
    figures = {name: png_bytes(figure, PAGE_DPI) for name, figure in figures_of(findings).items()}
    page = render("comparison.html", _content(compared, findings, figures, sentences), "attnlab.report")
    with atomic_folder(into) as folder:
        for name, picture in figures.items():
            (folder / f"{name}.png").write_bytes(picture)
        write_runs(compared.runs, folder / "comparison.csv")
        write_systems(findings, folder / "systems.csv")
        (folder / "comparison.md").write_text(markdown(findings), encoding="utf-8", newline="\n")
        (folder / PAGE).write_text(page, encoding="utf-8", newline="\n")


def check_into(into: Path) -> None:
    """Raise ExperimentError where the comparison would replace something else."""
    check_replaceable("into", into, COMPARISON)


def _content(
    compared: ComparedRuns, findings: Findings, figures: Mapping[str, bytes], sentences: int
) -> dict[str, Any]:
    wanted = measure_named(findings.wanted.measure)
    pictures = {name: inline_png(picture) for name, picture in figures.items()}
    measured = [measure_named(name) for name in in_order({name for run in compared.runs for name in run.measured})]
    return {
        "title": compared.title,
        "facts": compared.facts,
        "measure": wanted,
        "heading": heading,
        "level": percent(findings.wanted.confidence),
        "ranking": ranking(findings),
        "others": measures_shown(findings),
        "letters_sentence": letters_sentence(findings),
        "notes": notes(findings),
        "pictures": {name: pictures.get(name) for name in ("systems", "learning", "length", "cost")},
        "matrix": _matrix(findings, wanted),
        "baseline": findings.wanted.baseline,
        "grid": _grid(findings, wanted),
        "attention": attention_side_by_side(findings.systems, wanted.name, sentences),
        "measured": measured,
        "choices": list(dict.fromkeys(name for run in compared.runs for name in run.choices)),
        "runs": compared.runs,
        "left_out": compared.left_out,
    }


def _matrix(findings: Findings, measure: Measure) -> dict[str, Any] | None:
    """Rows and columns of systems; a cell is the row's system less the column's. None where there are no pairs."""
    if not findings.pairs:
        return None
    columns = list(dict.fromkeys(pair.second for pair in findings.pairs))
    found = {(pair.first, pair.second): pair for pair in findings.pairs}
    rows = [
        {"system": first, "cells": [_cell(found.get((first, second)), findings, measure) for second in columns]}
        for first in dict.fromkeys(pair.first for pair in findings.pairs)
    ]
    return {
        "columns": columns,
        "rows": rows,
        "pairs": len(findings.pairs),
        "sacrebleu": any(pair.p_of_sacrebleu is not None for pair in findings.pairs),
    }


def _cell(pair: Pair | None, findings: Findings, measure: Measure) -> dict[str, Any] | None:
    if pair is None:
        return None
    return {
        "difference": measure.shown(pair.difference, signed=True),
        "p": p_shown(pair.p),
        "sacrebleu": p_shown(pair.p_of_sacrebleu),
        "apart": pair.p is not None and pair.p < 1 - findings.wanted.confidence,
    }


def _grid(findings: Findings, measure: Measure) -> dict[str, Any] | None:
    """Means by two factors; None unless exactly two vary and most of their pairs exist.

    Better cells are darker.
    """
    choices = {system.name: system.runs[0].choices for system in findings.systems}
    names = list(dict.fromkeys(name for each in choices.values() for name in each))
    factors = [name for name in names if len({each.get(name) for each in choices.values()}) > 1]
    if len(factors) != 2:
        return None
    rows, columns = ([*dict.fromkeys(each.get(name, "") for each in _as_read(findings))] for name in factors)
    if 2 * len(choices) <= len(rows) * len(columns):
        return None
    at = {(each.get(factors[0], ""), each.get(factors[1], "")): name for name, each in choices.items()}
    means = {name: measure.sign * found.mean for name, found in findings.estimates[measure.name].items()}
    least, most = min(means.values()), max(means.values())
    cells = {
        place: {
            "text": mean_and_std(findings, measure, name),
            "shade": f"{0.08 + 0.5 * ((means[name] - least) / (most - least) if most > least else 0):.2f}",
        }
        for place, name in at.items()
    }
    table = [{"name": row, "cells": [cells.get((row, column)) for column in columns]} for row in rows]
    return {"factors": factors, "columns": columns, "rows": table}


def _as_read(findings: Findings) -> Sequence[Mapping[str, str]]:
    """The choices of the systems in the order of the sweep."""
    return [system.runs[0].choices for system in sorted(findings.systems, key=lambda system: system.number)]
