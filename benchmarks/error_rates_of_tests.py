"""How often the tests beside those of plain differences err: alike, shares, scatters, families.

    python benchmarks/error_rates_of_tests.py [--draws 2000] [--seeds 3 5 10 20] [--page]

Seeds of two systems are drawn whose truth is known, and judged as a study judges them. Counted are
verdicts that are false, and those that are true, where there is something to find. `--page` writes
the tables at the end of docs/statistics.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from arguments import at_least_one
from attnlab.evaluation.differences import independent_difference
from attnlab.evaluation.shares import Share, ShareDifference, independent_shares, paired_shares
from attnlab.evaluation.significance import holm
from attnlab.studies.measured_rows import MeasuredRows
from error_rates import BOUND, NEXT_MARK, PAGE, THRESHOLD, table
from results import Row, report

CONFIDENCE = 1 - THRESHOLD

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Values]


def normal(random: np.random.Generator, seeds: int) -> Values:
    return random.normal(size=seeds)


def heavy(random: np.random.Generator, seeds: int) -> Values:
    """Student's t of three degrees, as wide as `normal`."""
    return random.standard_t(3, size=seeds) / np.sqrt(3)


def skewed(random: np.random.Generator, seeds: int) -> Values:
    """An exponential distribution, as wide as `normal`, its mean 0."""
    return random.exponential(size=seeds) - 1


SHAPES: dict[str, Draw] = {"normal": normal, "heavy tails": heavy, "skewed": skewed}


# Alike: two one-sided tests

SCATTERS = (0.005, 0.01, 0.02)  # of seeds, beside a bound of 0.02


def rows_of_alike(seeds: Sequence[int], draws: int) -> Iterator[Row]:
    """`within` where the true difference is the bound itself, and where there is none."""
    for scatter in SCATTERS:
        for count in seeds:
            random = np.random.default_rng([count, 4])
            yield {
                "standard deviation of seeds": f"{scatter:.3f}",
                "seeds": count,
                "false: the difference is the bound": _share_within(
                    BOUND, scatter, count, draws, random
                ),
                "true: there is no difference": _share_within(0.0, scatter, count, draws, random),
            }


def _share_within(
    truth: float, scatter: float, seeds: int, draws: int, random: np.random.Generator
) -> float:
    holds = 0
    for _ in range(draws):
        ours = truth + scatter * normal(random, seeds)
        theirs = scatter * normal(random, seeds)
        difference = independent_difference(ours.tolist(), theirs.tolist())
        holds += difference is not None and difference.p_within(BOUND) < THRESHOLD
    return holds / draws


# Shares of seeds that learnt

SHARES = ((0.5, 0.5), (0.9, 0.9), (0.9, 0.5))


def rows_of_shares(seeds: Sequence[int], draws: int) -> Iterator[Row]:
    """One share against the true one; two shares of other seeds, and of the same seeds."""
    for test, judge in (("Fisher's, other seeds", independent), ("McNemar's, same seeds", paired)):
        for ours, theirs in SHARES:
            for count in seeds:
                random = np.random.default_rng([count, 5])
                found = [judge(random, count, ours, theirs) for _ in range(draws)]
                yield {
                    "test": test,
                    "true shares": f"{ours} and {theirs}",
                    "seeds": count,
                    "said to differ": _mean(each.p < THRESHOLD for each in found),
                    "intervals that hold": _mean(
                        each.low - 1e-12 <= ours - theirs <= each.high + 1e-12 for each in found
                    ),
                }
    for share in (0.5, 0.9):
        for count in seeds:
            random = np.random.default_rng([count, 6])
            drawn = [Share(int(random.binomial(count, share)), count) for _ in range(draws)]
            ends = [each.interval(CONFIDENCE) for each in drawn]
            yield {
                "test": "exact, one share",
                "true shares": str(share),
                "seeds": count,
                "said to differ": _mean(each.p_other_than(share) < THRESHOLD for each in drawn),
                "intervals that hold": _mean(low <= share <= high for low, high in ends),
            }


def independent(
    random: np.random.Generator, seeds: int, ours: float, theirs: float
) -> ShareDifference:
    one = Share(int(random.binomial(seeds, ours)), seeds)
    other = Share(int(random.binomial(seeds, theirs)), seeds)
    return independent_shares(one, other, CONFIDENCE)


def paired(random: np.random.Generator, seeds: int, ours: float, theirs: float) -> ShareDifference:
    """Of the same seeds: each system takes the luck of a seed in half of the cases."""
    luck = random.random(seeds)
    is_own = random.random((2, seeds)) < 0.5
    first, second = np.where(is_own, random.random((2, seeds)), luck)
    return paired_shares((first < ours).tolist(), (second < theirs).tolist(), CONFIDENCE)


# Scatters

WIDER = 3.0  # as wide is a system whose scatter should be found


def rows_of_scatters(seeds: Sequence[int], draws: int) -> Iterator[Row]:
    """Two systems of the same scatter around other means, and one of three times the other's."""
    for shape, draw in SHAPES.items():
        for count in seeds:
            random = np.random.default_rng([count, 7])
            yield {
                "seeds are": shape,
                "seeds": count,
                "false: the same scatter": _share_of_scatters(1.0, draw, count, draws, random),
                "true: three times the scatter": _share_of_scatters(
                    WIDER, draw, count, draws, random
                ),
            }


def _share_of_scatters(
    wider: float, draw: Draw, seeds: int, draws: int, random: np.random.Generator
) -> float:
    found = 0
    for _ in range(draws):
        ours, theirs = 5.0 + wider * draw(random, seeds), draw(random, seeds)
        rows = [
            {"system": name, "seed": seed, "value": value}
            for name, values in (("ours", ours), ("theirs", theirs))
            for seed, value in enumerate(values)
        ]
        measured = MeasuredRows(rows, ["ours", "theirs"])
        difference = measured.difference_of_scatters("ours", "theirs", "value")
        found += difference is not None and difference.p_other_than(0.0) < THRESHOLD
    return found / draws


# Families

FAMILY = 20  # primary expectations
EFFECT = 2.0  # standard deviations of the seeds


def rows_of_families(seeds: Sequence[int], draws: int) -> Iterator[Row]:
    """Twenty expectations of which none is true, or half of them, with Holm's method and without.

    Drawn are a tenth as many families.
    """
    families = max(1, draws // 10)
    for true in (0, FAMILY // 2):
        for count in seeds:
            random = np.random.default_rng([count, 8])
            p = np.array([_family(true, count, random) for _ in range(families)])
            corrected = np.array([holm(of_family) for of_family in p])
            for name, values in (("none", p), ("Holm's", corrected)):
                is_found = values < THRESHOLD
                yield {
                    "true effects": f"{true} of {FAMILY}",
                    "correction": name,
                    "seeds": count,
                    "families with a false verdict": float(is_found[:, true:].any(axis=1).mean()),
                    "true effects found": (
                        float(is_found[:, :true].mean()) if true else float("nan")
                    ),
                }


def _family(true: int, seeds: int, random: np.random.Generator) -> list[float]:
    """The p values, those of the true effects first."""
    p_values = []
    for number in range(FAMILY):
        effect = EFFECT if number < true else 0.0
        ours, theirs = effect + normal(random, seeds), normal(random, seeds)
        difference = independent_difference(ours.tolist(), theirs.tolist())
        p_values.append(1.0 if difference is None else difference.p_other_than(0.0))
    return p_values


def _mean(found: Iterator[bool]) -> float:
    return float(np.mean(list(found)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=at_least_one, default=2000)
    parser.add_argument("--seeds", type=at_least_one, nargs="+", default=[3, 5, 10, 20])
    parser.add_argument("--page", action="store_true", help="write docs/statistics.md")
    arguments = parser.parse_args()
    tables = {
        "alike": (f"Alike within {BOUND}", rows_of_alike),
        "shares": ("Shares of seeds", rows_of_shares),
        "scatters": ("Scatters", rows_of_scatters),
        "families": (f"Families of {FAMILY} expectations", rows_of_families),
    }
    lines = []
    for name, (title, rows_of) in tables.items():
        rows = list(rows_of(arguments.seeds, arguments.draws))
        report(f"error_rates_of_{name}", rows, [f"{arguments.draws} draws"])
        lines += ["", f"## {title}", "", *table(rows)]
    if arguments.page:
        before = PAGE.read_text(encoding="utf-8").partition(f"\n{NEXT_MARK}\n")[0].rstrip("\n")
        PAGE.write_text(
            before + "\n".join(["", "", NEXT_MARK, *lines[1:]]) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
