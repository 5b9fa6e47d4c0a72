"""Resampled seeds and sentences: their variances, and tests and intervals that keep their level."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from attnlab.evaluation.significance import (
    SystemSample,
    difference_of_systems,
    estimate,
    holm,
    letter_groups,
    resampled_sums,
    system_sample,
)

SAMPLES, SENTENCES = 200, 150


def simulated(
    qualities: list[float], seeds: int, spread: float, draw: np.random.Generator
) -> list[SystemSample]:
    """Systems whose seeds scatter by `spread`, measured by exact match.

    Each sentence is equally hard for all systems.
    """
    hardness = draw.normal(size=SENTENCES)
    correct = [
        quality + spread * draw.normal(size=(seeds, 1)) + draw.normal(size=(seeds, SENTENCES))
        > hardness
        for quality in qualities
    ]
    runs = [
        np.stack([run.astype(float), np.ones(SENTENCES)], axis=1)
        for system in correct
        for run in system
    ]
    sums = resampled_sums(runs, SAMPLES, draw)
    scores = [each[:, 0] / each[:, 1] for each in sums]
    return [
        system_sample(
            system.mean(axis=1).tolist(),
            np.stack(scores[i * seeds : (i + 1) * seeds]),
            SENTENCES,
            SAMPLES,
            draw,
        )
        for i, system in enumerate(correct)
    ]


def p_of_difference(first: SystemSample, second: SystemSample) -> float:
    found = difference_of_systems(first, second, 0.95)
    assert found is not None
    return found.p


def letters(systems: list[SystemSample]) -> list[str]:
    pairs = list(combinations(range(len(systems)), 2))
    corrected = holm([p_of_difference(systems[one], systems[other]) for one, other in pairs])
    return letter_groups(
        len(systems), [pair for pair, p in zip(pairs, corrected, strict=True) if p < 0.05]
    )


@pytest.mark.parametrize(("seeds", "spread"), [(2, 0.3), (3, 0.3), (3, 0.0), (5, 0.1), (7, 0.1)])
def test_comparison_of_equal_systems_rarely_finds_a_difference(seeds: int, spread: float) -> None:
    draw = np.random.default_rng(seeds)
    found = [letters(simulated([0.5] * 3, seeds, spread, draw)) for _ in range(200)]
    assert sum(each == ["a"] * 3 for each in found) >= 0.9 * len(found)


@pytest.mark.parametrize("seeds", [2, 3])
def test_comparison_of_very_different_systems_finds_a_difference(seeds: int) -> None:
    draw = np.random.default_rng(seeds)
    for _ in range(20):
        assert letters(simulated([2.5, -1.0], seeds, 0.05, draw)) == ["a", "b"]


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_estimate_interval_covers_the_true_mean(seeds: int) -> None:
    """A measure without sentences, for two seeds too.

    Plain percentiles would cover the mean only half of the time.
    """
    draw = np.random.default_rng(seeds)
    held = 0
    for _ in range(400):
        found = estimate(
            system_sample(draw.normal(size=seeds).tolist(), None, None, SAMPLES, draw), 0.95
        )
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high
    assert held >= 0.85 * 400


def test_system_samples_have_the_variances_of_means() -> None:
    values: NDArray[np.float64] = np.array([1.0, 4.0, 5.0])
    draw = np.random.default_rng(0)
    sample = system_sample(values.tolist(), None, None, 20_000, draw)
    np.testing.assert_array_equal(sample.by_sentences, np.full(20_000, values.mean()))
    assert sample.by_seeds.shape == (20_000,)
    assert abs(sample.by_seeds.mean()) < 0.05
    assert sample.by_seeds.var() == pytest.approx(values.var(ddof=1) / 3, rel=0.03)
    one = system_sample([3.0], np.arange(100.0)[None], 7, 100, draw)
    np.testing.assert_array_equal(one.by_sentences, np.arange(100.0))
    assert not one.by_seeds.any()


def test_resampled_sums_draw_the_same_sentences_for_all_systems() -> None:
    first = np.stack([np.arange(30.0), np.ones(30)], axis=1)
    sums, again = resampled_sums([first, 2 * first], 250, np.random.default_rng(3))
    assert sums.shape == (250, 2)
    np.testing.assert_array_equal(sums[:, 1], 30)
    np.testing.assert_array_equal(again, 2 * sums)
    assert sums[:, 0].mean() / 30 == pytest.approx(14.5, abs=0.3)
    assert sums[:, 0].std() / 30 == pytest.approx(first[:, 0].std() / 30**0.5, rel=0.15)


def test_estimate_reports_seeds_mean_std_and_interval() -> None:
    draw = np.random.default_rng(0)
    found = estimate(system_sample([0.98, 1.0], None, None, 1000, draw), 0.95, 0.0, 1.0)
    assert (found.seeds, found.mean, found.over) == (2, pytest.approx(0.99), "seeds")
    assert found.std == pytest.approx(0.02 / 2**0.5)
    assert found.high == 1.0  # the end of the range
    bare = estimate(system_sample([0.5], None, None, 1000, draw), 0.95)
    assert (bare.std, bare.low, bare.high, bare.over) == (None, None, None, "")


def test_p_of_difference_of_seeds_alone_equals_welchs_test() -> None:
    from scipy.stats import ttest_ind

    one, other = [1.0, 1.2, 0.9, 1.1], [1.5, 1.9, 1.3]
    draw = np.random.default_rng(0)
    samples = [system_sample(values, None, None, 50_000, draw) for values in (one, other)]
    assert p_of_difference(*samples) == pytest.approx(
        ttest_ind(one, other, equal_var=False).pvalue, rel=0.1
    )


@pytest.mark.parametrize("seeds", [(2, 5), (3, 3), (6, 7)])
def test_two_level_bootstrap_of_equal_systems_rarely_finds_a_difference(
    seeds: tuple[int, int],
) -> None:
    draw = np.random.default_rng(sum(seeds))
    apart = 0
    for _ in range(400):
        samples = [
            system_sample(draw.normal(size=number).tolist(), None, None, SAMPLES, draw)
            for number in seeds
        ]
        apart += p_of_difference(*samples) < 0.05
    assert apart <= 0.08 * 400


def test_estimate_interval_over_three_seeds_hardly_depends_on_the_draw():
    """One outlier among three seeds.

    The sample that holds nothing else, 1 of 27, lies within every interval of 95 %.
    """
    lows = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        scores = np.array([[27.3], [27.9], [18.1]]) + 0.5 * random.standard_normal((3, 1000))
        sample = system_sample([27.3, 27.9, 18.1], scores, 1000, 1000, random)
        lows.append(np.quantile(sample.by_sentences + sample.by_seeds, 0.025))
    assert max(lows) - min(lows) < 0.5


def test_nothing_is_resampled_where_nothing_is_counted() -> None:
    assert resampled_sums([], SAMPLES, np.random.default_rng(1)) == []
