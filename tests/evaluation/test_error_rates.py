"""The simulation of verdicts: their error rates where the truth is known, in small."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def simulation(request: pytest.FixtureRequest):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        import error_rates

        yield error_rates
    for name in ("error_rates", "arguments", "results", "machine"):
        sys.modules.pop(name, None)


DRAWS = 300
# Of 300 draws that err with a chance of 0.05, in one of a thousand cases more than this.
MOST_FALSE = 0.094


@pytest.mark.parametrize("seeds", [3, 5, 8])
@pytest.mark.parametrize(
    "systems", ["the same sentences are hard", "each system has hard sentences of its own"]
)
def test_equal_systems_are_seldom_told_apart(simulation, systems: str, seeds: int) -> None:
    random = np.random.default_rng(seeds)
    world = simulation.WORLDS[systems]
    false, held = simulation.rates(world, simulation.with_sentences, seeds, DRAWS, random)
    assert false < MOST_FALSE
    assert held > 1 - MOST_FALSE


def test_seeds_alone_find_what_other_sentences_would_not_show(simulation) -> None:
    world = simulation.WORLDS["each system has hard sentences of its own"]
    false, _ = simulation.rates(world, simulation.seeds_alone, 10, DRAWS, np.random.default_rng(2))
    assert false > MOST_FALSE


def test_pairs_find_what_unpaired_seeds_hide(simulation) -> None:
    world = simulation.WORLDS["two measures of one model"]
    better = simulation.World(**{**vars(world), "lead": simulation.LEAD})
    paired, _ = simulation.rates(
        better, simulation.with_sentences, 5, DRAWS, np.random.default_rng(1)
    )
    unpaired, _ = simulation.rates(better, simulation.unpaired, 5, DRAWS, np.random.default_rng(1))
    assert paired > 0.9
    assert unpaired < 0.3


def test_one_seed_decides_nothing(simulation) -> None:
    world = simulation.World(lead=3.0)
    found, held = simulation.rates(
        world, simulation.with_sentences, 1, 20, np.random.default_rng(1)
    )
    assert found == 0
    assert np.isnan(held)


def test_true_difference_is_that_of_very_many_answers(simulation) -> None:
    world = simulation.World(lead=0.6, hard_for_one=1.0, failing=0.3)
    random = np.random.default_rng(1)
    differences = []
    for _ in range(400):
        ours, theirs = world.draw(20, random)
        differences.append(ours.mean() - theirs.mean())
    error = np.std(differences) / 400**0.5
    assert np.mean(differences) == pytest.approx(world.true_difference(), abs=4 * error)


def test_seeds_that_fail_hide_unless_a_threshold_is_named(simulation) -> None:
    """Of five seeds of which one in ten fails, more than half show no failure."""
    within, _ = simulation.alike_rates(None, 5, 100, np.random.default_rng(1))
    assert within > 0.4


def test_planned_looks_keep_the_level_that_unplanned_ones_lose(simulation) -> None:
    world = simulation.LOOKED_AT["the same sentences are hard"]
    planned = simulation.levels_of_looks(simulation.LOOKS, 0.05)
    draws = 150
    false, _ = simulation.looks_of(world, planned, draws, np.random.default_rng(1))
    assert false < 0.1
    better = simulation.World(**{**vars(world), "lead": simulation.LEAD})
    power, used = simulation.looks_of(better, planned, draws, np.random.default_rng(1))
    assert power > 0.95
    assert used < 15


@pytest.fixture(scope="module")
def of_tests(simulation):
    import error_rates_of_tests

    yield error_rates_of_tests
    sys.modules.pop("error_rates_of_tests", None)


def column(rows, name: str, **only: object) -> list[float]:
    return [row[name] for row in rows if all(row[key] == value for key, value in only.items())]


def test_two_systems_as_far_apart_as_the_bound_are_seldom_called_alike(of_tests) -> None:
    rows = list(of_tests.rows_of_alike([5, 10], DRAWS))
    false = column(rows, "false: the difference is the bound")
    assert max(false) < MOST_FALSE
    (found,) = column(
        rows,
        "true: there is no difference",
        **{"standard deviation of seeds": "0.005", "seeds": 10},
    )
    assert found > 0.95


def test_shares_are_seldom_said_to_differ_and_their_intervals_hold(of_tests) -> None:
    rows = list(of_tests.rows_of_shares([5, 20], DRAWS))
    for equal in ("0.5 and 0.5", "0.9 and 0.9", "0.5", "0.9"):
        assert max(column(rows, "said to differ", **{"true shares": equal})) < MOST_FALSE
    assert min(column(rows, "intervals that hold")) > 1 - MOST_FALSE
    found = column(rows, "said to differ", **{"true shares": "0.9 and 0.5", "seeds": 20})
    assert min(found) > 0.5


def test_scatters_are_seldom_told_apart_where_only_the_means_differ(of_tests) -> None:
    rows = list(of_tests.rows_of_scatters([5, 20], DRAWS))
    assert max(column(rows, "false: the same scatter")) < MOST_FALSE
    normal = {"seeds are": "normal", "seeds": 20}
    assert column(rows, "true: three times the scatter", **normal)[0] > 0.9


def test_holm_keeps_a_family_without_false_verdicts(of_tests) -> None:
    rows = list(of_tests.rows_of_families([10], 10 * 60))
    false = "families with a false verdict"
    none_true = {"true effects": "0 of 20"}
    assert column(rows, false, correction="none", **none_true)[0] > 0.4
    # Of 60 families that err with a chance of 0.05, in one of a thousand cases more than nine.
    assert column(rows, false, correction="Holm's", **none_true)[0] <= 9 / 60
