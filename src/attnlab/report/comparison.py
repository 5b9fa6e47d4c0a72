"""The page of a comparison, and the files beside it."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attnlab.files import atomic_folder, finite
from attnlab.plots.charts import CHART_STYLE, Style, inline, swatch
from attnlab.plots.curves import ranges_without
from attnlab.plots.heat_map import HeatMap
from attnlab.plots.html import render
from attnlab.report.answers import answers, interaction_sentence, rule
from attnlab.report.compared_runs import ComparedRuns, measured_names
from attnlab.report.comparison_figures import figure_files, figures_of
from attnlab.report.comparison_tables import (
    letters_sentence,
    notes,
    other_columns,
    p_shown,
    percent,
    ranking,
)
from attnlab.report.disagreement import Disagreement, Disputed, Output, disagreement
from attnlab.report.factors import Factors, factors_of
from attnlab.report.findings import Findings

PAGE = "index.html"
_MOST_MAPS = 8  # of a sentence


@dataclass(frozen=True)
class MlflowLinks:
    """pages: {run id: its address}.

    server: the command that starts the server at that address; None where one is running.
    """

    pages: Mapping[str, str]
    server: str | None


NO_LINKS = MlflowLinks({}, None)


def write_comparison(
    compared: ComparedRuns,
    findings: Findings,
    into: Path,
    sentences: int,
    mlflow: MlflowLinks = NO_LINKS,
) -> None:
    """Write the folder, whole or not at all; the same runs give the same bytes.

    index.html       the page, with its figures inside
    comparison.csv   a row for each run
    comparison.json  the answers, pairs, factors and disputed sentences
    systems.csv      a row for each system and measure
    *.svg            the figures

    sentences: how many show their attention, at most.
    """
    factors = factors_of(findings)
    disputed = disagreement(findings, sentences)
    content = _content(compared, findings, factors, disputed, into, mlflow)
    page = render("comparison.html", content, "attnlab.report")
    found = finite(_record(findings, factors, disputed))
    record = json.dumps(found, ensure_ascii=False, indent=2, allow_nan=False)
    with atomic_folder(into) as folder:
        for name, figure in figure_files(findings, factors).items():
            (folder / name).write_bytes(figure)
        _write_runs(compared, folder / "comparison.csv")
        _write_systems(findings, folder / "systems.csv")
        _write_text(folder / "comparison.json", record + "\n")
        _write_text(folder / PAGE, page)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _content(
    compared: ComparedRuns,
    findings: Findings,
    factors: Factors,
    disputed: Disagreement,
    into: Path,
    mlflow: MlflowLinks,
) -> dict[str, Any]:
    """What the page shows, by the names in its template."""
    of_the_page = {
        "title": compared.title,
        "compared": compared,
        "wanted": findings.wanted,
        "measure": findings.measure,
        "level": percent(findings.wanted.confidence),
        "figures": figures_of(findings, factors),
    }
    # Functions, and a style, with which the template shows what it is given.
    of_the_template = {
        "p_shown": p_shown,
        "outputs": outputs_shown,
        "inline": inline,
        "swatch": _swatch_in_page,
        "chart_style": CHART_STYLE,
    }
    return {
        **of_the_page,
        **of_the_template,
        **_answers_content(findings, factors),
        **_ranking_content(findings),
        **_factors_content(findings, factors),
        **_pairs_content(findings),
        **_disputed_content(disputed),
        **_runs_content(compared, into, mlflow),
    }


def _answers_content(findings: Findings, factors: Factors) -> dict[str, Any]:
    return {
        "answers": answers(findings, factors),
        "rule": rule(findings, factors),
        "needs_seeds": bool(findings.single),
    }


def _ranking_content(findings: Findings) -> dict[str, Any]:
    columns = other_columns(findings)
    return {
        "ranking": ranking(findings),
        "has_letters": findings.has_letters,
        "letters_sentence": letters_sentence(findings),
        "notes": notes(findings),
        "columns": [column for column in columns if not column.is_constant],
        "constant": [column for column in columns if column.is_constant],
    }


def _factors_content(findings: Findings, factors: Factors) -> dict[str, Any]:
    sentences = [interaction_sentence(each, findings) for each in factors.interactions]
    return {"factors": factors, "interactions": sentences}


def _pairs_content(findings: Findings) -> dict[str, Any]:
    return {
        "pairs": {(pair.first, pair.second): pair for pair in findings.pairs},
        "is_tested": any(pair.is_tested for pair in findings.pairs),
    }


def _disputed_content(disputed: Disagreement) -> dict[str, Any]:
    heat_maps: list[HeatMap] = []  # of the whole page, for their legend
    for sentence in (*disputed.sentences, *disputed.attended):
        for output in outputs_shown(sentence).cards:
            if "heat_map" in output.drawn:
                heat_maps.append(output.drawn["heat_map"])
    return {"disputed": disputed, "heat_maps": heat_maps}


def _runs_content(compared: ComparedRuns, into: Path, mlflow: MlflowLinks) -> dict[str, Any]:
    reports = _report_links(compared, into)
    rows_by_length = [row for run in compared.runs for row in run.evaluation.by_length]
    return {
        "without_bleu": ranges_without("bleu", rows_by_length),
        "measured": [compared.measures.named(name) for name in measured_names(compared.runs)],
        "reports": reports,
        "mlflow": mlflow,
        "has_links": any(reports) or bool(mlflow.pages),
    }


def _swatch_in_page(style: Style, is_line: bool = True) -> str:
    return inline(swatch(style, is_line))


def _report_links(compared: ComparedRuns, into: Path) -> list[str | None]:
    """The report of each run, relative to the page; None where there is none."""
    links: list[str | None] = []
    for run in compared.runs:
        if run.report is None:
            links.append(None)
            continue
        path = os.path.relpath(run.report.resolve(), into.resolve())
        links.append(quote(Path(path).as_posix()))
    return links


@dataclass(frozen=True, eq=False)
class EqualOutputs:
    """Systems that made the same of a sentence. output: that of the first."""

    systems: list[str]
    output: Output


@dataclass(frozen=True, eq=False)
class ShownOutputs:
    """The outputs of a sentence.

    cards: those with their attention.
    lines: those without, equal ones together.
    """

    cards: list[Output]
    lines: list[EqualOutputs]


def outputs_shown(sentence: Disputed) -> ShownOutputs:
    """The maps of the best systems, and the texts of all others."""
    cards = [output for output in sentence.outputs if output.drawn][:_MOST_MAPS]
    lines: dict[str, EqualOutputs] = {}
    for output in sentence.outputs:
        if output not in cards:
            line = lines.setdefault(output.text, EqualOutputs([], output))
            name = output.system
            if output.mean_quality is not None:
                name = f"{name} (mean of the seeds {output.mean_quality:.1f})"
            line.systems.append(name)
    return ShownOutputs(cards, list(lines.values()))


def _record(findings: Findings, factors: Factors, disputed: Disagreement) -> dict[str, Any]:
    """comparison.json: what was found, in the units of metrics.json."""
    found = answers(findings, factors)
    return {
        "measure": findings.wanted.measure,
        "confidence": findings.wanted.confidence,
        "answers": [asdict(answer) for answer in found],
        "rule": rule(findings, factors),
        "pairs": [asdict(pair) for pair in findings.pairs],
        "factors": [asdict(factor) for factor in factors.factors],
        "interactions": [asdict(interaction) for interaction in factors.interactions],
        "sentences": [_sentence_record(sentence) for sentence in disputed.sentences],
    }


def _sentence_record(sentence: Disputed) -> dict[str, Any]:
    return {
        "source": sentence.source,
        "expected": sentence.expected,
        "gap": sentence.gap,
        "outputs": {output.system: output.text for output in sentence.outputs},
    }


def _write_runs(compared: ComparedRuns, path: Path) -> None:
    """A row for each run: choices, seed, measures."""
    measured = measured_names(compared.runs)
    columns = ["run", "system", *compared.choices, "seed", *measured, "run_id"]
    rows = []
    for run in compared.runs:
        names = {"run": run.name, "system": run.system, "run_id": run.run_id}
        rows.append({**names, **run.choices, "seed": run.seed, **run.measured})
    _write(path, columns, rows)


def _write_systems(findings: Findings, path: Path) -> None:
    """A row for each system and measure. `over`: what was resampled for the interval."""
    columns = ["system", "metric", "n", "mean", "std", "low", "high", "over", "letters"]
    rows = []
    for system in findings.systems:
        for measure, of_systems in findings.estimates.items():
            found = of_systems.get(system.name)
            if found is None:
                continue
            row = {
                **vars(found),
                "system": system.name,
                "metric": measure,
                "n": found.seeds,
                "letters": findings.letters[measure].get(system.name),
            }
            rows.append(row)
    _write(path, columns, rows)


def _write(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(
            file, columns, restval="", extrasaction="ignore", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)
