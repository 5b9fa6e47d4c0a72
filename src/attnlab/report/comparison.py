"""The page of a comparison, its tables, and the files beside it."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.evaluation.measures import COSTS, Measure
from attnlab.files import atomic_folder
from attnlab.plots.figure import PAGE_DPI, png_bytes
from attnlab.plots.html import inline_png, render
from attnlab.report.compared_runs import ComparedRuns
from attnlab.report.comparison_figures import attention_side_by_side, figures_of
from attnlab.report.findings import Estimate, Findings

PAGE = "index.html"


def write_comparison(
    compared: ComparedRuns, findings: Findings, into: Path, sentences: int
) -> None:
    """Write the folder, whole or not at all; the same runs give the same bytes.

    index.html      the page, with its figures inside
    comparison.csv  a row for each run
    systems.csv     a row for each system and measure
    *.png           the figures

    sentences: how many show their attention, at most.
    """
    figures = {name: png_bytes(figure, PAGE_DPI) for name, figure in figures_of(findings).items()}
    content = _content(compared, findings, figures, sentences)
    page = render("comparison.html", content, "attnlab.report")
    with atomic_folder(into) as folder:
        for name, picture in figures.items():
            (folder / f"{name}.png").write_bytes(picture)
        _write_runs(compared, folder / "comparison.csv")
        _write_systems(findings, folder / "systems.csv")
        (folder / PAGE).write_text(page, encoding="utf-8", newline="\n")


def _content(
    compared: ComparedRuns, findings: Findings, figures: Mapping[str, bytes], sentences: int
) -> dict[str, Any]:
    """What the page shows, by the names in its template."""
    wanted = findings.measures.named(findings.wanted.measure)
    pictures = {name: inline_png(picture) for name, picture in figures.items()}
    pairs = {(pair.first, pair.second): pair for pair in findings.pairs}
    attention = attention_side_by_side(findings.systems, wanted.name, sentences)
    measured = [compared.measures.named(name) for name in _measured_names(compared)]
    return {
        "title": compared.title,
        "compared": compared,
        "measure": wanted,
        "wanted": findings.wanted,
        "level": percent(findings.wanted.confidence),
        "ranking": ranking(findings),
        "others": _other_measures(findings),
        "letters_sentence": letters_sentence(findings),
        "notes": notes(findings),
        "pictures": pictures,
        "pairs": pairs,
        "p_shown": p_shown,
        "attention": attention,
        "measured": measured,
    }


def _measured_names(compared: ComparedRuns) -> list[str]:
    """The names of all measures that any run has, in the order of the page."""
    names = {name for run in compared.runs for name in run.measured}
    return compared.measures.in_order(names)


def _other_measures(findings: Findings) -> list[Measure]:
    """Measures in the columns after the wanted one: costs, then other metrics."""
    others = [name for name in findings.estimates if name != findings.wanted.measure]
    others.sort(key=lambda name: name not in COSTS)
    return [findings.measures.named(name) for name in others]


def ranking(findings: Findings) -> list[dict[str, Any]]:
    """A row of texts for each system, the best first."""
    wanted = findings.measures.named(findings.wanted.measure)
    others = _other_measures(findings)
    rows = []
    for rank, system in enumerate(findings.systems, start=1):
        name = system.name
        found = findings.estimates[wanted.name][name]
        interval = "–"
        if found.low is not None and found.high is not None:
            interval = f"{wanted.shown(found.low)} to {wanted.shown(found.high)}"
        row = {
            "rank": rank,
            "system": name,
            "value": _mean_and_std(findings, wanted, name),
            "interval": interval,
            "letters": findings.letters[wanted.name].get(name, "–"),
            "seeds": found.seeds,
            "others": [_mean_and_std(findings, other, name) for other in others],
        }
        rows.append(row)
    return rows


def _mean_and_std(findings: Findings, measure: Measure, system: str) -> str:
    """`31.2 ± 0.4`; without a deviation for one seed, and a dash where nothing was measured."""
    found = findings.estimates[measure.name].get(system)
    if found is None:
        return "–"
    mean = measure.shown(found.mean)
    if found.std is None:
        return mean
    return f"{mean} ± {measure.shown(found.std)}"


def p_shown(p: float | None) -> str:
    """A p value as pages show it; a dash where nothing could be tested."""
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def percent(confidence: float) -> str:
    return f"{100 * confidence:g} %"


def letters_sentence(findings: Findings) -> str:
    """What the letters beside the systems mean, and how they were tested."""
    num_systems = len(findings.systems)
    if num_systems == 1:
        return "There is one system, and nothing to compare it with."
    if not any(findings.letters[findings.wanted.measure].values()):
        return (
            "With one seed a system, and a measure that does not come from sentences, no "
            "difference can be tested."
        )
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

    test_sets = len({run.test_set for system in findings.systems for run in system.runs})
    if test_sets > 1:
        sentences.append(
            f"There are {test_sets} test sets: between systems that were tested on different ones, "
            "sentences are not paired, and a difference may be one of the sentences."
        )
    return sentences


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
    single = [name for name, found in estimates.items() if found.seeds == 1]
    if len(single) == len(estimates):
        yield (
            "Every system has one seed: "
            "how much another would change is unknown, and no test covers it."
        )
    elif single:
        yield (
            f"{', '.join(single)} has one seed; "
            "tests take it to scatter as the system beside it does."
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
    return [
        f"The sentences of {name} are not resampled, for its code is {package}'s; "
        f"allow=[{package}] lets it run."
        for name, package in packages.items()
    ]


def _write_runs(compared: ComparedRuns, path: Path) -> None:
    """A row for each run: choices, seed, measures."""
    measured = _measured_names(compared)
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
