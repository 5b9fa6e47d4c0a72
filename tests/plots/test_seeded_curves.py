"""Curves over seeds: the mean, the band, and axes that show their numbers without formulas."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.figure import Figure

from attnlab.plots.bands import SeededCurve
from attnlab.plots.figure import png_bytes
from attnlab.plots.gradient_flow import gradient_flow_figure, power_of_ten
from attnlab.plots.length_generalisation import length_generalisation_figure


def flow_figure() -> Figure:
    falling = np.array([[1e-1, 1e-3, 1e-9], [3e-1, 5e-3, 3e-9]])
    curves = [SeededCurve("RNN", [0, 1, 2], falling, 0, dashed=True), SeededCurve("LSTM", [0, 1, 2], falling * 10, 1)]
    return gradient_flow_figure({"at initialisation": curves, "뒤에": curves})


def length_figure() -> Figure:
    curve = SeededCurve("attention", [4, 5, 6], [[100.0, 50.0, np.nan], [80.0, 70.0, np.nan]], 0)
    return length_generalisation_figure({"BLEU": [curve]}, (4, 5), {"BLEU": 100})


def test_the_line_is_the_mean_and_the_band_goes_from_least_to_greatest() -> None:
    (axes,) = length_figure().axes
    (line,) = axes.lines
    # Where no seed has a value there is no point.
    np.testing.assert_array_equal(line.get_xydata(), [[4, 90], [5, 60]])
    (band,) = (artist for artist in axes.collections if isinstance(artist, FillBetweenPolyCollection))
    edges = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert edges == {(4, 80), (4, 100), (5, 50), (5, 70)}


def test_panels_share_a_logarithmic_axis_that_holds_every_value() -> None:
    figure = flow_figure()
    first, second = figure.axes
    # Of values that differ by powers of ten the line is the geometric mean.
    np.testing.assert_allclose(first.lines[0].get_ydata()[2], (1e-9 * 3e-9) ** 0.5)
    assert first.get_yscale() == second.get_yscale() == "log"
    assert first.get_ylim() == second.get_ylim()
    low, high = first.get_ylim()
    assert low < 1e-9
    assert high > 3
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["RNN", "LSTM"]


def test_powers_of_ten_are_written_out() -> None:
    assert [power_of_ten(value) for value in (1e-12, 0.001, 1, 100, 20)] == ["10⁻¹²", "10⁻³", "10⁰", "10²", ""]


@pytest.mark.parametrize("build", [flow_figure, length_figure])
def test_they_draw_the_same_bytes_with_a_glyph_for_every_character(build) -> None:  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "Glyph ... missing from font(s)" is a warning
        assert png_bytes(build()) == png_bytes(build())


def test_values_must_fit_their_places() -> None:
    with pytest.raises(ValueError, match=r"P = 2 places, got \(2, 3\)"):
        SeededCurve("x", [1, 2], np.ones((2, 3)), 0)
