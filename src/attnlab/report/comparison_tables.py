"""The ranking of a comparison, its other columns, and the sentences about both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from attnlab.evaluation.measures import COSTS, Measure
from attnlab.report.findings import Estimate, Findings


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


def _other_measures(findings: Findings) -> list[Measure]:
    others = [name for name in findings.estimates if name != findings.wanted.measure]
    others.sort(key=lambda name: name in COSTS)  # behind what they were paid for
    return [findings.measures.named(name) for name in others]


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


def _num_test_sets(findings: Findings) -> int:
    test_sets: set[str] = set()
    for system in findings.systems:
        test_sets.update(run.test_set for run in system.runs)
    return len(test_sets)
