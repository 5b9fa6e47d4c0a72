"""How often the verdicts on differences err, on models whose true difference is known.

    python benchmarks/error_rates.py [--draws 2000] [--seeds 1 3 5 10 20] [--page]

Two systems with some seeds each answer 400 sentences right or wrong, and the difference of their
exact match is judged as a study judges it. That is drawn many times. Counted are false verdicts
where the two are equal, true ones where they are not, and intervals that hold the true difference.
`--page` writes the tables of docs/statistics.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit  # type: ignore[import-untyped]

from arguments import at_least_one
from attnlab.evaluation.differences import (
    Difference,
    SentenceScatter,
    independent_difference,
    paired_difference,
)
from attnlab.evaluation.looks import levels_of_looks
from results import Row, report

SENTENCES = 400
LOOKS = (5, 10, 15, 20)
BOUND = 0.02  # of two systems that are alike
THRESHOLD = 0.05
NEXT_MARK = "<!-- error_rates_of_tests.py -->"  # behind which another benchmark writes
PAGE = Path(__file__).resolve().parent.parent / "docs" / "statistics.md"

Right = NDArray[np.bool_]
"""(n, N): whether each seed has each sentence right."""


@dataclass(frozen=True)
class World:
    """How systems err; what scatters is normal, in log-odds.

    hard: how much sentences differ, alike for both systems.
    hard_for_one: how much they differ for each system on its own.
    seeds: how much seeds differ.
    level: log-odds of a right answer of the first system.
    lead: of the first system over the second one, in log-odds.
    failing: the share of the second system's seeds that fail, and get a twentieth right.
    both_fail: whether as many seeds of the first one do.
    paired: whether both are measures of the same models.
    """

    hard: float = 1.5
    hard_for_one: float = 0.0
    seeds: float = 0.2
    level: float = 2.0
    lead: float = 0.0
    failing: float = 0.0
    both_fail: bool = False
    paired: bool = False

    def draw(self, seeds: int, random: np.random.Generator) -> tuple[Right, Right]:
        """The answers of so many seeds of both systems."""
        alike = self.hard * random.normal(size=SENTENCES)
        of_seeds = self.seeds * random.normal(size=(2, seeds, 1))
        if self.paired:
            of_seeds[1] = of_seeds[0]
        answers = []
        for number, of_system in enumerate(of_seeds):
            own = self.hard_for_one * random.normal(size=SENTENCES)
            chance = expit(self.level - number * self.lead + alike + own + of_system)
            if self.failing and (number == 1 or self.both_fail):
                chance[random.random(seeds) < self.failing] = 0.05
            answers.append(random.random((seeds, SENTENCES)) < chance)
        return answers[0], answers[1]

    def true_difference(self) -> float:
        """The difference of the expected exact matches, over all seeds and sentences."""
        spread = np.sqrt(self.hard**2 + self.hard_for_one**2 + self.seeds**2)
        grid, weights = np.polynomial.hermite_e.hermegauss(60)
        share = weights / weights.sum()
        first = float(share @ expit(self.level + spread * grid))
        second = float(share @ expit(self.level - self.lead + spread * grid))
        second = (1 - self.failing) * second + self.failing * 0.05
        if self.both_fail:
            first = (1 - self.failing) * first + self.failing * 0.05
        return first - second


WORLDS = {
    "the same sentences are hard": World(),
    "each system has hard sentences of its own": World(hard=0.5, hard_for_one=1.5),
    "seeds differ much": World(seeds=0.8),
    "both nearly always right": World(level=8.0),
    "two measures of one model": World(seeds=0.8, paired=True),
}
LEAD = 0.6

Judge = Callable[[Right, Right, bool], Difference | None]


def with_sentences(ours: Right, theirs: Right, paired: bool) -> Difference | None:
    """As a study judges: over seeds, and over sentences that both systems share."""
    by_sentence = ours.mean(axis=0) - theirs.mean(axis=0)
    scatter = SentenceScatter(float(by_sentence.var()) / SENTENCES, SENTENCES)
    if paired:
        return paired_difference(ours.mean(axis=1) - theirs.mean(axis=1), scatter)
    return independent_difference(ours.mean(axis=1), theirs.mean(axis=1), scatter)


def seeds_alone(ours: Right, theirs: Right, paired: bool) -> Difference | None:
    """By the seeds, as where no sentences are known."""
    if paired:
        return paired_difference(ours.mean(axis=1) - theirs.mean(axis=1))
    return independent_difference(ours.mean(axis=1), theirs.mean(axis=1))


def unpaired(ours: Right, theirs: Right, paired: bool) -> Difference | None:
    """Over seeds and sentences, blind to what comes from one model."""
    return with_sentences(ours, theirs, paired=False)


JUDGES: dict[str, Judge] = {
    "seeds and sentences": with_sentences,
    "seeds alone": seeds_alone,
    "unpaired": unpaired,
}


def rates(
    world: World, judge: Judge, seeds: int, draws: int, random: np.random.Generator
) -> tuple[float, float]:
    """The share of draws that find a difference, and of intervals that hold the true one.

    The second is of the draws with an interval; NaN where none has one.
    """
    truth = world.true_difference()
    found, held = 0, []
    for _ in range(draws):
        difference = judge(*world.draw(seeds, random), world.paired)
        if difference is None:
            continue
        found += difference.p_other_than(0.0) < THRESHOLD
        low, high = difference.interval(1 - THRESHOLD)
        held.append(low <= truth <= high)
    return found / draws, float(np.mean(held)) if held else float("nan")


def rows_of_levels(seeds: Sequence[int], draws: int) -> Iterator[Row]:
    """False findings and coverage of equal systems, and findings of unequal ones."""
    for name, world in WORLDS.items():
        for judge_name, judge in JUDGES.items():
            if judge is unpaired and not world.paired:
                continue
            for count in seeds:
                random = np.random.default_rng([count, 1])
                false, coverage = rates(world, judge, count, draws, random)
                better = World(**{**vars(world), "lead": LEAD})
                power, _ = rates(better, judge, count, draws, random)
                yield {
                    "systems": name,
                    "judged by": judge_name,
                    "seeds": count,
                    "false differences": false,
                    "intervals that hold": coverage,
                    "true differences found": power,
                }


def alike_rates(
    learnt: float | None, seeds: int, draws: int, random: np.random.Generator
) -> tuple[float, float]:
    """How often `within` holds, and `better` does not hold, of a system that fails at times.

    The second system fails on a tenth of its seeds, so that the first one is better by far more
    than the bound, and the two are equal among the seeds that learnt.

    learnt: the exact match from which a seed counts as learnt; None counts all.
    """
    world = World(hard=0.5, seeds=0.1, level=5.0, failing=0.1)
    within = not_better = 0
    for _ in range(draws):
        ours, theirs = world.draw(seeds, random)
        if learnt is not None:
            ours, theirs = (group[group.mean(axis=1) >= learnt] for group in (ours, theirs))
        if min(len(ours), len(theirs)) == 0:
            continue
        difference = with_sentences(ours, theirs, paired=False)
        means = np.concatenate([ours.mean(axis=1), theirs.mean(axis=1)])
        if difference is None or np.ptp(means) == 0:
            continue
        within += difference.p_within(BOUND) < THRESHOLD
        not_better += 2 * difference.p_below(0.0) < THRESHOLD
    return within / draws, not_better / draws


def rows_of_failing(seeds: Sequence[int], draws: int) -> Iterator[Row]:
    for name, learnt in (("all seeds", None), ("seeds that learnt", 0.5)):
        for count in seeds:
            random = np.random.default_rng([count, 2])
            within, not_better = alike_rates(learnt, count, draws, random)
            yield {
                "means over": name,
                "seeds": count,
                f"within {BOUND} holds": within,
                "better does not hold": not_better,
                "no seed fails": 0.9**count,
            }


def _shown(value: float | str) -> str:
    if isinstance(value, float):
        return "–" if np.isnan(value) else f"{value:.3f}"
    return str(value)


LOOKED_AT = {
    "the same sentences are hard": World(),
    "each system has hard sentences of its own": World(hard=0.5, hard_for_one=1.5),
    "both fail on a tenth of their seeds": World(hard=0.5, level=4.0, failing=0.1, both_fail=True),
}


def looks_of(
    world: World, levels: Sequence[float], draws: int, random: np.random.Generator
) -> tuple[float, float]:
    """The share of studies that find a difference at any look, and their seeds in the mean.

    levels: of the looks.
    """
    found = used = 0
    for _ in range(draws):
        ours, theirs = world.draw(LOOKS[-1], random)
        for seeds, level in zip(LOOKS, levels, strict=True):
            difference = with_sentences(ours[:seeds], theirs[:seeds], paired=False)
            is_found = difference is not None and difference.p_other_than(0.0) < level
            if is_found or seeds == LOOKS[-1]:
                found += is_found
                used += seeds
                break
    return found / draws, used / draws


def rows_of_looks(draws: int) -> Iterator[Row]:
    planned = levels_of_looks(LOOKS, THRESHOLD)
    for name, levels in (("planned", planned), ("each at 0.05", (THRESHOLD,) * len(LOOKS))):
        for systems, world in LOOKED_AT.items():
            false, _ = looks_of(world, levels, draws, np.random.default_rng(3))
            better = World(**{**vars(world), "lead": LEAD})
            power, used = looks_of(better, levels, draws, np.random.default_rng(3))
            yield {
                "looks": name,
                "systems": systems,
                "false differences": false,
                "true differences found": power,
                "seeds until then": used,
            }


def table(rows: Sequence[Row]) -> list[str]:
    """Rows as a table in Markdown."""
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    for row in rows:
        cells = []
        for value in row.values():
            cells.append(_shown(value))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=at_least_one, default=2000)
    parser.add_argument("--seeds", type=at_least_one, nargs="+", default=[1, 3, 5, 10, 20])
    parser.add_argument("--page", action="store_true", help="write docs/statistics.md")
    arguments = parser.parse_args()
    levels = list(rows_of_levels(arguments.seeds, arguments.draws))
    report("error_rates", levels, [f"{arguments.draws} draws"])
    failing = list(rows_of_failing(arguments.seeds, arguments.draws))
    report("error_rates_of_failing_seeds", failing, [f"{arguments.draws} draws"])
    looks = list(rows_of_looks(arguments.draws))
    report("error_rates_of_looks", looks, [f"{arguments.draws} draws"])
    if arguments.page:
        write_page(levels, failing, looks, arguments.draws)


def write_page(
    levels: Sequence[Row], failing: Sequence[Row], looks: Sequence[Row], draws: int
) -> None:
    before, _, ours = PAGE.read_text(encoding="utf-8").partition("<!-- error_rates.py -->\n")
    _, mark, after = ours.partition(f"\n{NEXT_MARK}\n")
    lines = [
        "<!-- error_rates.py -->",
        f"{draws:,} draws; {SENTENCES} sentences; a lead of {LEAD} in log-odds is found or not.",
        "",
        *table(levels),
        "",
        "## A system that fails on a tenth of its seeds",
        "",
        *table(failing),
        "",
        f"## Looks after {', '.join(map(str, LOOKS[:-1]))} and {LOOKS[-1]} seeds",
        "",
        *table(looks),
    ]
    PAGE.write_text(before + "\n".join(lines) + "\n" + mark + after, encoding="utf-8")


if __name__ == "__main__":
    main()
