"""Comparison of systems: intervals, p values and groups by a bootstrap of seeds and sentences.

Seeds and sentences cross: every seed translates every sentence. The two-level bootstrap resamples
both, independently of each other (compare the pigeonhole bootstrap of Owen 2007, "The pigeonhole
bootstrap", Annals of Applied Statistics 1). The sentences of a sample are the same for all systems,
so that their differences are paired (Koehn 2004, "Statistical significance tests for machine
translation evaluation").

The part of the seeds is measured on the whole test set: on a sample of it, seeds also scatter by
the choice of its sentences, which the part of the sentences already contains. What remains in both
parts is that seeds do well on different sentences. It makes intervals wider than they claim to be
and tests more careful, the more so the smaller the test set and the less the seeds differ on the
whole of it.

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

from attnlab.evaluation.corpus_metric import CorpusMetric
from attnlab.evaluation.differences import (
    FEWEST_SEEDS_EXACT,
    degrees_of_freedom,
    independent_difference,
    student_quantile,
)

# Samples drawn at a time: the counts of all of them, B by N, would take much memory.
_CHUNK = 100


@dataclass(frozen=True, eq=False)
class SystemSample:
    """Measured and resampled values of a system, which is a mean over seeds.

    values: (n,) the metric of each seed.
    by_sentences: (B,) the mean over the seeds on samples of the sentences; constant without
        sentences.
    by_seeds: (B,) what samples of the seeds add to it; 0 for a single seed. Its variance is scaled
        to that of a mean of n: the bootstrap's own is smaller by (n - 1) / n, a half of it for two
        seeds (Hesterberg 2015, "What teachers should know about the bootstrap", The American
        Statistician 69).
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
    if not statistics:
        return []
    sentences = len(statistics[0])
    equal_chances = np.full(sentences, 1 / sentences)
    chunks: list[list[NDArray[np.float64]]] = [[] for _ in statistics]
    for start in range(0, samples, _CHUNK):
        # How often each sentence was drawn; a sum over a sample is then a product of matrices.
        size = min(_CHUNK, samples - start)
        counts = random.multinomial(sentences, equal_chances, size=size).astype(np.float64)
        for own_chunks, own_statistics in zip(chunks, statistics, strict=True):
            own_chunks.append(counts @ own_statistics)
    return [np.concatenate(own_chunks) for own_chunks in chunks]


def scores_of_samples(metric: CorpusMetric, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """(B, K) sums over samples -> (B,) the metric of each.

    A sample in which the metric is not defined, such as one without any sentence that has gold
    links, gets the mean of the others.
    """
    defined = sums.any(axis=1)
    scores = np.full(len(sums), np.nan)
    scores[defined] = metric.scores(sums[defined])
    undefined = np.isnan(scores)
    if not undefined.all():
        scores[undefined] = scores[~undefined].mean()
    return scores


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
    by_sentences = scores.mean(axis=0)  # (B,)

    seeds = len(measured)
    if seeds == 1:
        return SystemSample(measured, by_sentences, np.zeros(samples), sentences)
    drawn_means = measured[_draw_seeds(seeds, samples, random)].mean(axis=1)  # (B,)
    scale = math.sqrt(seeds / (seeds - 1))  # see `SystemSample.by_seeds`
    by_seeds = scale * (drawn_means - measured.mean())
    return SystemSample(measured, by_sentences, by_seeds, sentences)


def _draw_seeds(seeds: int, samples: int, random: np.random.Generator) -> NDArray[np.int64]:
    """(B, n) the seeds of each sample.

    Few seeds have few possible samples (three seeds have 27), and at random one of these may be
    drawn too seldom to reach a quantile. So where there is room for all of them, each is drawn
    equally often.
    """
    if seeds**seeds > samples:
        return random.integers(seeds, size=(samples, seeds))
    possible = np.array(list(itertools.product(range(seeds), repeat=seeds)))
    return possible[random.permutation(samples) % len(possible)]


@dataclass(frozen=True)
class Estimate:
    """Mean of a system and its interval.

    seeds: how many were measured.
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
    """Mean, standard deviation and a percentile bootstrap interval.

    The interval holds the mean with about this `confidence`. Few seeds estimate the variance
    poorly, so the part of the seeds is widened as Student's t with n - 1 degrees of freedom is
    wider than the normal distribution, and the percentiles are taken of that (after the "expanded
    percentile interval" of Hesterberg 2015, which moves the percentiles instead). By plain
    percentiles two seeds would make an interval that misses the mean every second time.

    least, most: the ends of the metric's range, where the interval is cut.
    """
    seeds = sample.seeds
    resampled = []
    if seeds > 1:
        resampled.append("seeds")
    if sample.sentences is not None:
        resampled.append("sentences")
    mean = float(sample.values.mean())
    std = float(sample.values.std(ddof=1)) if seeds > 1 else None
    if not resampled:
        return Estimate(seeds, mean, std, low=None, high=None, over="")

    tail = (1 - confidence) / 2
    # The part of a single seed is zero, so nothing can widen it.
    widening = stdtrit(seeds - 1, 1 - tail) / ndtri(1 - tail) if seeds > 1 else 1.0
    means = sample.by_sentences + widening * sample.by_seeds  # (B,)
    low, high = np.clip(np.quantile(means, [tail, 1 - tail]), least, most).tolist()
    return Estimate(seeds, mean, std, low, high, over=" and ".join(resampled))


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of means over seeds, such as a difference of two of them.

    low, high: its interval.
    p: of the hypothesis that it is 0, two-sided.
    """

    value: float
    low: float
    high: float
    p: float


def contrast(
    samples: Sequence[SystemSample], weights: Sequence[float], confidence: float
) -> Contrast | None:
    """A weighted sum of means, with its interval; None where a system has a single seed.

    The standard error is the standard deviation of the sum over the two-level bootstrap: seeds
    drawn for each system by itself, sentences for all alike. (Systems tested on different sentences
    have these drawn separately.) The sum in standard errors is compared with Student's t, whose
    degrees of freedom follow from the parts of the variance (Satterthwaite 1946, as in Welch's
    test): those of the seeds, which are few, and that of the sentences. The interval excludes 0
    exactly where p is below 1 - confidence.

    Counting the samples on the other side of zero would be wrong: of two equal systems with two
    seeds each, both seeds of one beat both seeds of the other in one of three cases.

    weights: one for each system; they sum to 0.
    """
    if any(sample.seeds == 1 for sample in samples):
        return None

    value = 0.0
    resampled = np.zeros(len(samples[0].by_sentences))  # (B,)
    parts: list[tuple[float, int]] = []
    for sample, weight in zip(samples, weights, strict=True):
        value += weight * float(sample.values.mean())
        resampled += weight * (sample.by_sentences + sample.by_seeds)
        parts.append((weight**2 * _variance_of_mean(sample), sample.seeds - 1))
    variance = float(resampled.var(ddof=1))

    rounding = 1e-12 * max(abs(sample.values).max() for sample in samples)
    if variance <= rounding**2:
        return Contrast(value, value, value, p=1.0 if abs(value) <= rounding else 0.0)

    sentences = [sample.sentences for sample in samples if sample.sentences is not None]
    if len(sentences) == len(samples):
        seed_variance = sum(part for part, _ in parts)
        parts.append((max(0.0, variance - seed_variance), max(1, min(sentences) - 1)))
    error = math.sqrt(variance)
    degrees = degrees_of_freedom(parts)
    reach = student_quantile((1 + confidence) / 2, degrees) * error
    p = float(2 * stdtr(degrees, -abs(value) / error))
    return Contrast(value, value - reach, value + reach, p)


def difference_of_systems(
    first: SystemSample, second: SystemSample, confidence: float
) -> Contrast | None:
    """The first mean less the second; None where a system has a single seed.

    From six seeds on a permutation of the seeds must find it as certain as `contrast` does: the
    less certain p, and the wider interval, count (see `attnlab.evaluation.differences`).
    """
    found = contrast([first, second], [1, -1], confidence)
    if found is None or min(first.seeds, second.seeds) < FEWEST_SEEDS_EXACT:
        return found
    exact = independent_difference(first.values.tolist(), second.values.tolist())
    if exact is None:
        return found
    low, high = exact.interval(confidence)
    p = max(found.p, exact.p_other_than(0.0))
    return Contrast(found.value, min(found.low, low), max(found.high, high), p)


def _variance_of_mean(sample: SystemSample) -> float:
    if sample.seeds == 1:
        return 0.0
    return float(sample.values.var(ddof=1)) / sample.seeds


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected for multiple tests by Holm's method, in their order.

    Holm 1979, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6. The smallest of m is multiplied by m, the next one by m - 1, ...; none is then
    less than the one before it, or more than 1. Rejecting what is below 0.05 rejects any true
    hypothesis at all with a probability of 0.05 at most.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    multiplied = p[order] * np.arange(len(p), 0, -1)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(multiplied), 1.0)
    return corrected.tolist()


def letter_groups(count: int, apart: Iterable[tuple[int, int]]) -> list[str]:
    """The compact letter display: systems that share a letter do not differ significantly.

    By the insert-and-absorb algorithm of Piepho 2004 ("An algorithm for a letter-based
    representation of all-pairwise comparisons", Journal of Computational and Graphical Statistics
    13).

    Args:
        count: number of systems, the best one first: it gets an `a`.
        apart: pairs that differ significantly.

    Returns the letters of each system. Two systems share a letter exactly where their pair is not
    in `apart`.
    """
    groups = [frozenset(range(count))]
    for one, other in sorted({(min(pair), max(pair)) for pair in apart}):
        # Insert: a group that holds both becomes two, each without one of them.
        inserted: list[frozenset[int]] = []
        for group in groups:
            if one in group and other in group:
                inserted += [group - {one}, group - {other}]
            else:
                inserted.append(group)
        # Absorb: a group inside a larger one says nothing new.
        distinct = list(dict.fromkeys(inserted))
        groups = [group for group in distinct if not any(group < larger for larger in distinct)]

    groups.sort(key=sorted)
    letters = [""] * count
    for letter, group in zip(string.ascii_letters, groups, strict=False):
        for system in group:
            letters[system] += letter
    return letters
