"""What is known of one system: the mean over its seeds, how far they scatter, and where the mean may lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit  # type: ignore[import-untyped]

from attnlab.evaluation.two_level_bootstrap import SystemSample


@dataclass(frozen=True)
class Estimate:
    """seeds: how many were measured.
    std: of the seeds around their mean (divided by n - 1); None of a single one.
    low, high: the interval of the mean; None where nothing could be drawn again.
    over: what was drawn again for it: `seeds and sentences`, `seeds`, `sentences` or nothing.
    """

    seeds: int
    mean: float
    std: float | None
    low: float | None
    high: float | None
    over: str


def estimate(sample: SystemSample, confidence: float, least: float = -np.inf, most: float = np.inf) -> Estimate:
    """Mean, standard deviation, and a percentile bootstrap interval that holds the mean with about this `confidence`.

    Few seeds say little of how far seeds scatter. So what sampling the seeds adds is widened as Student's t with n - 1
    degrees of freedom is wider than the normal distribution, and the percentiles are taken of that (after the "expanded
    percentile interval" of Hesterberg 2015, which moves the percentiles instead). By plain percentiles two seeds would
    make an interval that misses the mean every second time.

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
    return Estimate(seeds, mean, std, float(np.clip(low, least, most)), float(np.clip(high, least, most)), over)
