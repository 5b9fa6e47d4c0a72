"""Lines with a band around them: a figure's value over several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from attnlab.plots.figure import COLOURS


@dataclass(frozen=True, eq=False)
class SeededCurve:
    """One value along an axis, measured once for each seed.

    label: what the legend calls it.
    x: P places on the axis.
    values: (seeds, P); NaN where nothing was measured.
    colour: a number into the project's colours.
    dashed: how curves of one colour are told apart.
    """

    label: str
    x: Sequence[float]
    values: ArrayLike
    colour: int
    dashed: bool = False

    def __post_init__(self) -> None:
        shape = np.shape(self.values)
        if len(shape) != 2 or shape[0] == 0 or shape[1] != len(self.x):
            raise ValueError(f"values must be (seeds, P) with P = {len(self.x)} places, got {shape}")


def draw_curves(axes: Axes, curves: Sequence[SeededCurve], marker: str | None = None, geometric: bool = False) -> None:
    """The mean over the seeds as a line, and all that lies between the least and the greatest as a band.

    geometric: take the geometric mean, which on a logarithmic axis is the one that no single seed decides.
    """
    for curve in curves:
        values: NDArray[np.float64] = np.asarray(curve.values, dtype=np.float64)
        measured = ~np.isnan(values).all(0)
        x, values = np.asarray(curve.x)[measured], values[:, measured]
        colour = COLOURS[curve.colour]
        style = "--" if curve.dashed else "-"
        axes.fill_between(x, np.nanmin(values, 0), np.nanmax(values, 0), color=colour, alpha=0.16, linewidth=0)
        mean = np.exp(np.nanmean(np.log(values), 0)) if geometric else np.nanmean(values, 0)
        axes.plot(x, mean, style, color=colour, label=curve.label, linewidth=1.6, marker=marker, markersize=3)
