"""Whether two systems differ, or one of them only had luck with its seeds and with the sentences of the test set."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr  # type: ignore[import-untyped]

from attnlab.evaluation.two_level_bootstrap import SystemSample


def p_of_difference(first: SystemSample, second: SystemSample) -> float | None:
    """The two-sided p of the difference between two means over seeds; None where nothing could be drawn again.

    The standard error is the standard deviation of the difference over the two-level bootstrap: seeds drawn for each
    system by itself, sentences for both alike. (Of systems that were tested on different sentences these are drawn
    apart as well.) The difference in standard errors is held against Student's t, whose degrees of freedom follow from
    the parts of the variance (Satterthwaite 1946, as in Welch's test): those of the seeds, which are few, and that of
    the sentences.

    To count the samples on the other side of zero would not do: of two systems with two seeds each, both seeds of the
    one are better than both of the other one time in three where the systems are equal.
    """
    sentences = None if first.sentences is None or second.sentences is None else min(first.sentences, second.sentences)
    if first.seeds == second.seeds == 1 and sentences is None:
        return None
    difference = float(first.values.mean() - second.values.mean())
    apart = first.by_sentences + first.by_seeds - second.by_sentences - second.by_seeds  # (B,)
    parts = _of_the_seeds(first, second)
    unseen = sum(part for part, _ in parts) - sum(_of_the_mean(each) for each in (first, second))
    variance = float(apart.var(ddof=1)) + unseen
    scale = max(abs(first.values).max(), abs(second.values).max())
    if variance <= (1e-12 * scale) ** 2:  # nothing varied, but for rounding
        return 1.0 if abs(difference) <= 1e-12 * scale else 0.0
    if sentences is not None:
        of_sentences = max(0.0, variance - sum(part for part, _ in parts))
        parts.append((of_sentences, max(1, sentences - 1)))
    weights = sum(part**2 / degrees for part, degrees in parts)
    degrees = sum(part for part, _ in parts) ** 2 / weights
    return float(2 * stdtr(degrees, -abs(difference) / np.sqrt(variance)))


def _of_the_seeds(first: SystemSample, second: SystemSample) -> list[tuple[float, int]]:
    """What the seeds add to the variance of the difference, with its degrees of freedom.

    A system with one seed says nothing of its scatter. Beside one that does, it is taken to scatter alike: to take its
    one value for exact would find a difference between equal systems one time in six.
    """
    scattering = [each for each in (first, second) if each.seeds > 1]
    if len(scattering) == 1:
        (known,) = scattering
        of_one = float(known.values.var(ddof=1))
        return [(of_one / known.seeds + of_one, known.seeds - 1)]
    return [(_of_the_mean(each), each.seeds - 1) for each in scattering]


def _of_the_mean(sample: SystemSample) -> float:
    return float(sample.values.var(ddof=1)) / sample.seeds if sample.seeds > 1 else 0.0
