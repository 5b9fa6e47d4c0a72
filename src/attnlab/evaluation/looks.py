"""Looks at the seeds while a study runs: when it may stop, and stay right.

Who looks after each five seeds, and stops at the first p below 0.05, errs far more often than in
one of twenty studies. Here the looks are fixed beforehand, and the level is spent over them (Lan
and DeMets 1983, "Discrete sequential boundaries for clinical trials", Biometrika 70), by the
function that follows O'Brien and Fleming 1979: little at first, nearly all at the end. A look
compares p with what is its own; p itself comes from Student's t or an exact test, so that few seeds
count as few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq  # type: ignore[import-untyped]
from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]

FUTILE = 0.1  # a study stops where the chance to end certain is smaller
_POINTS = 2001  # of the grid that integrates the paths which went on


def spent(share: float, level: float) -> float:
    """How much of a two-sided level may be spent at this share of the seeds.

    Each side spends a half of it by Lan and DeMets' function for one side, 2 - 2Φ(z / √share).
    """
    quantile = ndtri(1 - level / 4)
    return float(4 * ndtr(-quantile / math.sqrt(share)))


@cache
def levels_of_looks(looks: tuple[int, ...], level: float) -> tuple[float, ...]:
    """The two-sided level of each look, such that all of them together err at `level`.

    looks: the seeds at each look, rising; the last one is the end.

    The sum of what was seen walks like Brownian motion; the paths that crossed no bound so far are
    integrated step by step (Armitage, McPherson and Rowe 1969, "Repeated significance tests on
    accumulating data", Journal of the Royal Statistical Society A 132).
    """
    shares = [seeds / looks[-1] for seeds in looks]
    levels = []
    paths: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    before_share = before_spent = 0.0
    for share in shares:
        own = spent(share, level) - before_spent
        step = math.sqrt(share - before_share)
        bound = _bound(paths, step, own)
        levels.append(float(2 * ndtr(-bound / math.sqrt(share))))
        paths = _paths_within(paths, step, bound)
        before_share, before_spent = share, before_spent + own
    return tuple(levels)


_Paths = tuple[NDArray[np.float64], NDArray[np.float64]] | None
"""Where paths are that went on, and their density there; None at the start, which is at 0."""


def _bound(paths: _Paths, step: float, chance: float) -> float:
    """What a path passes at the next look, on either side, with this chance."""

    def excess(bound: float) -> float:
        return _chance_beyond(paths, step, bound) - chance

    return float(brentq(excess, 1e-6, 12 * step + 12))


def _chance_beyond(paths: _Paths, step: float, bound: float) -> float:
    if paths is None:
        return float(2 * ndtr(-bound / step))
    places, density = paths
    beyond = ndtr((places - bound) / step) + ndtr((-places - bound) / step)
    return float(np.trapezoid(density * beyond, places))


def _paths_within(paths: _Paths, step: float, bound: float) -> _Paths:
    """The paths that stay within the bound at the next look."""
    places = np.linspace(-bound, bound, _POINTS)
    if paths is None:
        return places, _normal(places / step) / step
    before, density = paths
    moves = _normal((places[:, None] - before[None, :]) / step) / step
    return places, np.asarray(np.trapezoid(density * moves, before, axis=1))


def _normal(values: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)
    return found


def chance_of_the_end(p: float, look: int, looks: Sequence[int], level: float) -> float:
    """The chance to be certain at the last look, if the difference is what it is now.

    Conditional power (Lan and Wittes 1988, "The B-value: a tool for monitoring data", Biometrics
    44).

    p: two-sided, at this look. look: the seeds so far.
    """
    share = look / looks[-1]
    if share >= 1:
        return 0.0
    last_level = levels_of_looks(tuple(looks), level)[-1]
    value = float(ndtri(1 - p / 2)) * math.sqrt(share)
    expected = value / share
    bound = float(ndtri(1 - last_level / 2))
    return float(ndtr((expected - bound) / math.sqrt(1 - share)))
