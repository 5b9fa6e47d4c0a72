"""Comparison of systems: the two-level bootstrap over seeds and sentences, intervals, p values,
groups in letters.

Seeds and sentences cross: every seed translates every sentence. Both are drawn again, independently
of each other (compare the pigeonhole bootstrap of Owen 2007, "The pigeonhole bootstrap", Annals of
Applied Statistics 1), and the sentences of a sample are the same for all systems, so that their
differences are paired (Koehn 2004, "Statistical significance tests for machine translation
evaluation"). What the seeds add is taken from the whole test set: on a sample of it, seeds scatter
by the chances of its sentences as well, which the sentences' own part has in it already. What
remains in both parts is that seeds do well on different sentences. It makes intervals wider than
they claim to be and tests more careful, the more so the smaller the test set and the less the seeds
differ on the whole of it.

Axes: R runs, N sentences, K sums, B samples.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit  # type: ignore[import-untyped]

_AT_A_TIME = 100  # samples: their counts are B by N


@dataclass(frozen=True, eq=False)
class SystemSample:
    """Measured and resampled values of a system, which is a mean over seeds.

    values: (n,) the metric of each seed.
    by_sentences: (B,) the mean over the seeds on samples of the sentences; constant without
        sentences.
    by_seeds: (B,) what samples of the seeds add to it; 0 for a single seed. Its variance is that of
        a mean of n: the bootstrap's own is smaller by (n - 1) / n, a half of it for two seeds
        (Hesterberg 2015, "What teachers should know about the bootstrap", The American Statistician
        69).
    sentences: their number; None where the metric cannot be computed from resampled sentences.
    """

    values: NDArray[np.float64]
    by_sentences: NDArray[np.float64]
    by_seeds: NDArray[np.float64]
    sentences: int | None

    @property
    def seeds(self) -> int:
        return len(self.values)


def resampled_sums(
    statistics: Sequence[NDArray[np.float64]], samples: int, random: np.random.Generator
) -> list[NDArray[np.float64]]:
    """Sums over samples of the sentences, which are the same samples for all.

    statistics: arrays (N, K), each with a K of its own. Returns an array (B, K) for each.
    """
    sentences = len(statistics[0])
    even = np.full(sentences, 1 / sentences)
    sums: list[list[NDArray[np.float64]]] = [[] for _ in statistics]
    for start in range(0, samples, _AT_A_TIME):
        # How often each sentence was drawn; a sum over a sample is then a product of matrices.
        counts = random.multinomial(sentences, even, size=min(_AT_A_TIME, samples - start)).astype(
            np.float64
        )
        for parts, of_sentences in zip(sums, statistics, strict=True):
            parts.append(counts @ of_sentences)
    return [np.concatenate(parts) for parts in sums]


def system_sample(
    values: Sequence[float],
    scores: NDArray[np.float64] | None,
    sentences: int | None,
    samples: int,
    random: np.random.Generator,
) -> SystemSample:
    """The samples of a system.

    Args:
        values: n, the metric of each seed.
        scores: (n, B), the metric of each seed on the same samples of sentences; None where there
            are no such samples.
        random: draws the seeds; use a separate generator for each system.
    """
    measured = np.asarray(values, dtype=np.float64)
    if scores is None:
        scores = np.repeat(measured[:, None], samples, axis=1)
    seeds = len(measured)
    by_sentences = scores.mean(axis=0)  # (B,)
    if seeds == 1:
        return SystemSample(measured, by_sentences, np.zeros(samples), sentences)
    drawn = measured[_drawn_seeds(seeds, samples, random)].mean(axis=1)  # (B,)
    return SystemSample(
        measured,
        by_sentences,
        math.sqrt(seeds / (seeds - 1)) * (drawn - measured.mean()),
        sentences,
    )


def _drawn_seeds(seeds: int, samples: int, random: np.random.Generator) -> NDArray[np.int64]:
    """(B, n) the seeds of each sample.

    Of few seeds there are few samples, 27 of three, and by chance one of them comes too seldom to
    reach a quantile: so where all of them have room each comes as often as any other.
    """
    if seeds**seeds > samples:
        return random.integers(seeds, size=(samples, seeds))
    every = np.array(list(itertools.product(range(seeds), repeat=seeds)))
    return every[random.permutation(samples) % len(every)]


@dataclass(frozen=True)
class Estimate:
    """seeds: how many were measured.
    std: of the seeds (divided by n - 1); None for a single seed.
    low, high: the interval of the mean; None where nothing can be resampled.
    over: what was resampled: `seeds and sentences`, `seeds`, `sentences` or an empty string.
    """

    seeds: int
    mean: float
    std: float | None
    low: float | None
    high: float | None
    over: str


def estimate(
    sample: SystemSample, confidence: float, least: float = -np.inf, most: float = np.inf
) -> Estimate:
    """Mean, standard deviation, and a percentile bootstrap interval that holds the mean with about
    this `confidence`.

    Few seeds estimate the variance poorly, so the part of the seeds is widened as Student's t with
    n - 1
    degrees of freedom is wider than the normal distribution, and the percentiles are taken of that
    (after the "expanded percentile interval" of Hesterberg 2015, which moves the percentiles
    instead). By plain percentiles two seeds would make an interval that misses the mean every
    second time.

    least, most: the ends of the metric's range, where the interval is cut.
    """
    seeds = sample.seeds
    over = " and ".join(["seeds"] * (seeds > 1) + ["sentences"] * (sample.sentences is not None))
    mean = float(sample.values.mean())
    std = float(sample.values.std(ddof=1)) if seeds > 1 else None
    if not over:
        return Estimate(seeds, mean, std, None, None, over)
    tail = (1 - confidence) / 2
    wider = stdtrit(seeds - 1, 1 - tail) / ndtri(1 - tail) if seeds > 1 else 1.0
    low, high = np.quantile(sample.by_sentences + wider * sample.by_seeds, [tail, 1 - tail])
    return Estimate(
        seeds, mean, std, float(np.clip(low, least, most)), float(np.clip(high, least, most)), over
    )


def p_of_difference(first: SystemSample, second: SystemSample) -> float | None:
    """The two-sided p of the difference between two means over seeds; None where nothing can be
    resampled.

    The standard error is the standard deviation of the difference over the two-level bootstrap:
    seeds drawn for each system by itself, sentences for both alike. (Systems tested on different
    sentences have these drawn separately.) The difference in standard errors is compared with
    Student's t, whose degrees of freedom follow from the parts of the variance (Satterthwaite 1946,
    as in Welch's test): that of the seeds, which are few, and that of the sentences.

    Counting the samples on the other side of zero would be wrong: of two equal systems with two
    seeds each, both seeds of one beat both seeds of the other in one of three cases.
    """
    sentences = (
        None
        if first.sentences is None or second.sentences is None
        else min(first.sentences, second.sentences)
    )
    if first.seeds == second.seeds == 1 and sentences is None:
        return None
    difference = float(first.values.mean() - second.values.mean())
    apart = first.by_sentences + first.by_seeds - second.by_sentences - second.by_seeds  # (B,)
    parts = _of_the_seeds(first, second)
    unseen = sum(part for part, _ in parts) - sum(_of_the_mean(each) for each in (first, second))
    variance = float(apart.var(ddof=1)) + unseen
    scale = max(abs(first.values).max(), abs(second.values).max())
    if variance <= (1e-12 * scale) ** 2:  # no variance except rounding
        return 1.0 if abs(difference) <= 1e-12 * scale else 0.0
    if sentences is not None:
        of_sentences = max(0.0, variance - sum(part for part, _ in parts))
        parts.append((of_sentences, max(1, sentences - 1)))
    weights = sum(part**2 / degrees for part, degrees in parts)
    degrees = sum(part for part, _ in parts) ** 2 / weights
    return float(2 * stdtr(degrees, -abs(difference) / np.sqrt(variance)))


def _of_the_seeds(first: SystemSample, second: SystemSample) -> list[tuple[float, int]]:
    """What the seeds add to the variance of the difference, with its degrees of freedom.

    One seed shows no variance. Its system gets the variance of the other system: taking the single
    value as exact would find a difference between equal systems in one of six cases.
    """
    scattering = [each for each in (first, second) if each.seeds > 1]
    if len(scattering) == 1:
        (known,) = scattering
        of_one = float(known.values.var(ddof=1))
        return [(of_one / known.seeds + of_one, known.seeds - 1)]
    return [(_of_the_mean(each), each.seeds - 1) for each in scattering]


def _of_the_mean(sample: SystemSample) -> float:
    return float(sample.values.var(ddof=1)) / sample.seeds if sample.seeds > 1 else 0.0


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected by Holm 1979 ("A simple sequentially rejective multiple test procedure",
    Scandinavian Journal of Statistics 6), in their order.

    The smallest of m is multiplied by m, the next one by m - 1, ...; none is then less than the one
    before it, or more than 1. Rejecting what is below 0.05 rejects any true hypothesis at all with
    a probability of 0.05 at most.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return corrected.tolist()


def letter_groups(count: int, apart: Iterable[tuple[int, int]]) -> list[str]:
    """The compact letter display of Piepho 2004 ("An algorithm for a letter-based representation of
    all-pairwise comparisons", Journal of Computational and Graphical Statistics 13), by his
    insert-and-absorb algorithm.

    Args:
        count: number of systems, the best one first: it gets an `a`.
        apart: pairs that differ significantly.

    Returns the letters of each system. Two systems share a letter exactly where their pair is not
    in `apart`.
    """
    groups = [frozenset(range(count))]
    for one, other in sorted({(min(pair), max(pair)) for pair in apart}):
        split: list[frozenset[int]] = []
        for group in groups:
            # Insert
            split += [group - {one}, group - {other}] if {one, other} <= group else [group]
        distinct = list(dict.fromkeys(split))
        # Absorb
        groups = [group for group in distinct if not any(group < larger for larger in distinct)]
    groups.sort(key=sorted)
    named = list(zip(string.ascii_letters, groups, strict=False))
    return ["".join(letter for letter, group in named if each in group) for each in range(count)]
