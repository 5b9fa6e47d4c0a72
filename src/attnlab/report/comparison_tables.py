"""The tables of a comparison: for the page, the terminal, Markdown and CSV."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.report.compared_runs import COSTS, ComparedRun
from attnlab.report.findings import Findings
from attnlab.report.measures import Measure, in_order, measure_named


def measures_shown(findings: Findings) -> list[Measure]:
    """Measures in the columns after the wanted one: costs, then other metrics."""
    others = [name for name in findings.estimates if name not in (findings.wanted.measure, *COSTS)]
    costs = [name for name in COSTS if name in findings.estimates and name != findings.wanted.measure]
    return [measure_named(name) for name in (*costs, *others)]


def ranking(findings: Findings) -> list[dict[str, Any]]:
    """A row of texts for each system, the best first."""
    wanted = measure_named(findings.wanted.measure)
    rows = []
    for rank, system in enumerate(findings.systems, start=1):
        found = findings.estimates[wanted.name][system.name]
        others = {measure.name: mean_and_std(findings, measure, system.name) for measure in measures_shown(findings)}
        rows.append(
            {
                "rank": rank,
                "system": system.name,
                "value": mean_and_std(findings, wanted, system.name),
                "interval": interval(wanted, found.low, found.high),
                "letters": findings.letters[wanted.name].get(system.name, "–"),
                "seeds": found.seeds,
                "others": others,
            }
        )
    return rows


def mean_and_std(findings: Findings, measure: Measure, system: str) -> str:
    found = findings.estimates[measure.name].get(system)
    if found is None:
        return "–"
    return measure.shown(found.mean) + (f" ± {measure.shown(found.std)}" if found.std is not None else "")


def interval(measure: Measure, low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{measure.shown(low)} to {measure.shown(high)}"


def p_shown(p: float | None) -> str:
    return "–" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def percent(confidence: float) -> str:
    return f"{100 * confidence:g} %"


def markdown(findings: Findings) -> str:
    """The ranking as a Markdown table with a sentence below it."""
    wanted = measure_named(findings.wanted.measure)
    others = measures_shown(findings)
    level = percent(findings.wanted.confidence)
    header = ["system", heading(wanted), level, "group", "seeds", *map(heading, others)]
    lines = [header, ["---"] * len(header)]
    for row in ranking(findings):
        cells = [row["system"], row["value"], row["interval"], row["letters"], row["seeds"], *row["others"].values()]
        lines.append([str(cell).replace("|", "\\|") for cell in cells])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    explanation = " ".join([letters_sentence(findings), *notes(findings)])
    return f"{table}\n\nMean ± standard deviation over seeds. {explanation}\n"


def heading(measure: Measure) -> str:
    return f"{measure.label} {measure.better}".strip()


def letters_sentence(findings: Findings) -> str:
    if len(findings.systems) == 1:
        return "There is one system, and nothing to hold it against."
    count = len(findings.systems) * (len(findings.systems) - 1) // 2
    if not any(findings.letters[findings.wanted.measure].values()):
        return "With one seed a system, and a measure that does not come from sentences, no difference can be tested."
    return (
        "Systems that share a letter cannot be told apart (two-level bootstrap with "
        f"{findings.wanted.samples:,} samples, Holm's correction over {count} pair{'s' * (count != 1)}, "
        f"{percent(findings.wanted.confidence)})."
    )


def notes(findings: Findings) -> list[str]:
    """Sentences about the intervals and tests of this comparison."""
    said = []
    of_measure = findings.estimates[findings.wanted.measure]
    for over in dict.fromkeys(found.over for found in of_measure.values()):
        names = [name for name, found in of_measure.items() if found.over == over]
        of_whom = "" if len(names) == len(of_measure) else f" of {', '.join(names)}"
        if over:
            said.append(f"The interval{of_whom} is that of the mean, drawn over {over}.")
        else:
            said.append(f"There is no interval{of_whom}: one seed, and a measure that does not come from sentences.")
    single = [name for name, found in of_measure.items() if found.seeds == 1]
    if single:
        if len(single) == len(of_measure):
            said.append("Every system has one seed: how much another would change is not known, and no test knows it.")
        else:
            said.append(f"{', '.join(single)} has one seed; tests take it to scatter as the system beside it does.")
    if any(found.seeds == 2 for found in of_measure.values()):
        said.append("Two seeds say little of how far seeds scatter, so an interval over two is wide.")
    test_sets = len({run.evaluation.test_set for system in findings.systems for run in system.runs})
    if test_sets > 1:
        said.append(
            f"There are {test_sets} test sets: between systems that were tested on different ones, sentences are not "
            "paired, and a difference may be one of the sentences."
        )
    return said


def write_runs(runs: Sequence[ComparedRun], path: Path) -> None:
    """Write a row for each run: choices, seed, measures."""
    choices = list(dict.fromkeys(name for run in runs for name in run.choices))
    measured = in_order({name for run in runs for name in run.measured})
    rows = [
        {"run": run.name, "system": run.system, **run.choices, "seed": run.seed, **run.measured, "run_id": run.run_id}
        for run in runs
    ]
    _write(path, ["run", "system", *choices, "seed", *measured, "run_id"], rows)


def write_systems(findings: Findings, path: Path) -> None:
    """Write a row for each system and measure. `over`: what was resampled for the interval."""
    rows = [
        {
            "system": system.name,
            "metric": measure,
            "n": found.seeds,
            "mean": found.mean,
            "std": found.std,
            "low": found.low,
            "high": found.high,
            "over": found.over,
            "letters": findings.letters[measure].get(system.name),
        }
        for system in findings.systems
        for measure, of_systems in findings.estimates.items()
        if (found := of_systems.get(system.name)) is not None
    ]
    _write(path, ["system", "metric", "n", "mean", "std", "low", "high", "over", "letters"], rows)


def _write(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
