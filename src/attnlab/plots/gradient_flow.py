"""How much of the loss gradient arrives at each encoder state, by its distance from the end of the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from attnlab.plots.bands import SeededCurve, draw_curves
from attnlab.plots.figure import INK, new_figure, styled_axes, use_our_fonts

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def gradient_flow_figure(panels: Mapping[str, Sequence[SeededCurve]]) -> Figure:
    """Panels side by side, {title: curves}, on one logarithmic axis.

    curves: a gradient norm, above 0, by distance.
    """
    figure = new_figure(4.4 * len(panels), 3.9)
    for index, (title, curves) in enumerate(panels.items(), start=1):
        axes = styled_axes(figure, 1, len(panels), index)
        if index == 1:
            axes.set_ylabel("norm of the loss gradient", fontsize=9, color=INK)
        else:
            axes.sharey(figure.axes[0])
            axes.tick_params(labelleft=False)
        draw_curves(axes, curves, geometric=True)
        axes.set_yscale("log")
        axes.set_title(title, fontsize=10, color=INK, loc="left")
        axes.set_xlabel("tokens from the end of the source", fontsize=9, color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(LogLocator(numticks=12))
        # matplotlib would set powers of ten as formulas, which our texts never are.
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    # The panels share their curves, so one legend serves all.
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False)
    use_our_fonts(figure)
    return figure


def power_of_ten(value: float) -> str:
    """`10⁻³` for 0.001; empty where the value is no power of ten."""
    exponent = np.log10(value)
    if abs(exponent - round(exponent)) > 1e-9:
        return ""
    return "10" + str(round(exponent)).translate(_SUPERSCRIPTS)
