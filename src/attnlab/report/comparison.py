"""The page of a comparison, its tables, and the files beside it."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attnlab.evaluation.measures import COSTS, Measure
from attnlab.files import atomic_folder, finite
from attnlab.plots.charts import CHART_STYLE, Style, inline, swatch
from attnlab.plots.curves import ranges_without
from attnlab.plots.heat_map import HeatMap
from attnlab.plots.html import render
from attnlab.report.answers import answers, interaction_sentence, rule
from attnlab.report.compared_runs import ComparedRuns, measured_names
from attnlab.report.comparison_figures import figure_files, figures_of
from attnlab.report.disagreement import Disagreement, Disputed, Output, disagreement
from attnlab.report.factors import Factors, factors_of
from attnlab.report.findings import Estimate, Findings

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


def _other_measures(findings: Findings) -> list[Measure]:
    others = [name for name in findings.estimates if name != findings.wanted.measure]
    others.sort(key=lambda name: name in COSTS)  # behind what they were paid for
    return [findings.measures.named(name) for name in others]


@dataclass(frozen=True)
class Cell:
    """What was measured of a system, as texts.

    mean: over the seeds; a dash where nothing was measured.
    deviation: over the seeds; empty for one seed.
    """

    mean: str
    deviation: str = ""

    @property
    def text(self) -> str:
        """`31.2 ± 0.4`."""
        return f"{self.mean} ± {self.deviation}" if self.deviation else self.mean


def _cell(findings: Findings, measure: Measure, system: str) -> Cell:
    found = findings.estimates[measure.name].get(system)
    if found is None:
        return Cell("–")
    mean = measure.shown(found.mean)
    if found.std is None:
        return Cell(mean)
    return Cell(mean, measure.shown(found.std))


@dataclass(frozen=True)
class RankedSystem:
    """A row of the ranking, as texts; dashes stand where there is no interval or no letter."""

    rank: int
    system: str
    value: str
    interval: str
    letters: str
    seeds: int


def ranking(findings: Findings) -> list[RankedSystem]:
    """A row for each system, the best first."""
    wanted = findings.measure
    rows = []
    for rank, system in enumerate(findings.systems, start=1):
        name = system.name
        found = findings.estimate_of(name)
        interval = "–"
        if found.low is not None and found.high is not None:
            interval = f"{wanted.shown(found.low)} to {wanted.shown(found.high)}"
        row = RankedSystem(
            rank,
            name,
            value=_cell(findings, wanted, name).text,
            interval=interval,
            letters=findings.letters[wanted.name].get(name, "–"),
            seeds=found.seeds,
        )
        rows.append(row)
    return rows


@dataclass(frozen=True, eq=False)
class Column:
    """Measures that are equal in every row, so that one column shows them all.

    cells: one for each system.
    """

    measures: list[Measure]
    cells: list[Cell]

    @property
    def is_constant(self) -> bool:
        """Whether all systems have the same value."""
        return len(self.cells) > 1 and len(set(self.cells)) == 1


def other_columns(findings: Findings) -> list[Column]:
    """The measures but the wanted one, in the order of the pages, costs last."""
    columns: dict[tuple[Cell, ...], Column] = {}
    for measure in _other_measures(findings):
        cells = [_cell(findings, measure, system.name) for system in findings.systems]
        column = columns.setdefault(tuple(cells), Column([], cells))
        column.measures.append(measure)
    return list(columns.values())


def p_shown(p: float | None) -> str:
    """A p value as pages show it; a dash where nothing could be tested."""
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def percent(confidence: float) -> str:
    return f"{100 * confidence:g} %"


def letters_sentence(findings: Findings) -> str:
    """What the letters beside the systems mean, and how they were tested; empty without any."""
    if not findings.has_letters:
        return ""
    num_systems = len(findings.letters[findings.wanted.measure])
    count = num_systems * (num_systems - 1) // 2
    pairs = "1 pair" if count == 1 else f"{count} pairs"
    return (
        "Systems that share a letter cannot be told apart (two-level bootstrap with "
        f"{findings.wanted.samples:,} samples, Holm's correction over {pairs}, "
        f"{percent(findings.wanted.confidence)})."
    )


def notes(findings: Findings) -> list[str]:
    """Sentences about the intervals and tests of this comparison."""
    estimates = findings.estimates[findings.wanted.measure]
    sentences = [*_interval_notes(estimates), *_seed_notes(estimates)]
    sentences += _not_resampled(findings)

    num_test_sets = _num_test_sets(findings)
    if num_test_sets > 1:
        sentences.append(
            f"There are {num_test_sets} test sets: between systems that were tested on different "
            "ones, sentences are not paired, and a difference may be one of the sentences."
        )
    return sentences


def _num_test_sets(findings: Findings) -> int:
    test_sets: set[str] = set()
    for system in findings.systems:
        test_sets.update(run.test_set for run in system.runs)
    return len(test_sets)


def _interval_notes(estimates: Mapping[str, Estimate]) -> Iterator[str]:
    """What the intervals were drawn over, a sentence for all systems that agree in it."""
    for over in dict.fromkeys(found.over for found in estimates.values()):
        names = [name for name, found in estimates.items() if found.over == over]
        of_whom = "" if len(names) == len(estimates) else f" of {', '.join(names)}"
        if over:
            yield f"The interval{of_whom} is that of the mean, drawn over {over}."
        else:
            yield (
                f"There is no interval{of_whom}: "
                "one seed, and a measure that does not come from sentences."
            )


def _seed_notes(estimates: Mapping[str, Estimate]) -> Iterator[str]:
    """What can be known from so few seeds."""
    if all(found.seeds == 1 for found in estimates.values()):
        yield (
            "Every system has one seed: "
            "how much another would change is unknown, and no test covers it."
        )
    if any(found.seeds == 2 for found in estimates.values()):
        yield "Two seeds say little of how far seeds scatter, so an interval over two is wide."


def _not_resampled(findings: Findings) -> list[str]:
    """Sentences about metrics of the user's whose code may not run here."""
    packages: dict[str, str] = {}
    for system in findings.systems:
        for run in system.runs:
            for name, recorded in run.own_metrics.items():
                if name not in run.resampled:
                    packages[name] = str(recorded.node["_target_"]).partition(".")[0]

    sentences = []
    for name, package in packages.items():
        sentences.append(
            f"The sentences of {name} are not resampled, for its code is {package}'s; "
            f"allow=[{package}] lets it run."
        )
    return sentences


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
