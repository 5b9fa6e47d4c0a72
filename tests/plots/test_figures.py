"""The figures of a comparison: what is drawn where, and more systems than there are colours."""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.figure import Figure

from attnlab.plots.bands import SeededCurve
from attnlab.plots.cost_scatter import SystemCost, cost_scatter
from attnlab.plots.figure import COLOURS, png_bytes
from attnlab.plots.seeded_panels import seeded_panels
from attnlab.plots.shared_legend import colour_of, legend_text, repeats
from attnlab.plots.system_intervals import SystemInterval, interval_figure


def curves(count: int) -> list[SeededCurve]:
    return [
        SeededCurve(f"체계 {i}", [10, 20], np.array([[i, i + 1.0], [i, i + 2.0]]), colour_of(i), bool(repeats(i) % 2))
        for i in range(count)
    ]


def panels() -> Figure:
    return seeded_panels({"BLEU ↑": curves(2), "NLL ↓": curves(3)}, "step")


def intervals() -> Figure:
    systems = [
        SystemInterval("bahdanau $x$", [1.0, 3.0], 2.0, 0.5, 3.5, "a", 0),
        SystemInterval("어텐션 없음", [1.0], 1.0, None, None, "b", 1),
    ]
    return interval_figure(systems, "BLEU ↑, test")


def costs() -> Figure:
    return cost_scatter([SystemCost(f"체계 {i}", [1.0 + i, 3.0 + i], [i, i + 2.0], i) for i in range(9)], "min", "BLEU")


def test_each_figure_is_the_same_again_with_a_glyph_for_every_character() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "Glyph ... missing from font(s)" is a warning
        for build in (panels, intervals, costs):
            assert png_bytes(build()) == png_bytes(build())


def test_panels_share_a_legend_that_names_each_system_once() -> None:
    figure = panels()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["체계 0", "체계 1", "체계 2"]
    line = figure.axes[0].lines[1]
    np.testing.assert_array_equal(line.get_xydata(), [[10, 1], [20, 2.5]])


def test_after_the_last_colour_lines_are_dashed_and_marks_have_another_shape() -> None:
    axes = seeded_panels({"": curves(len(COLOURS) + 1)}, "step").axes[0]
    first, last = axes.lines[0], axes.lines[-1]
    assert first.get_color() == last.get_color()
    assert (first.get_linestyle(), last.get_linestyle()) == ("-", "--")
    marks = costs().axes[0].lines
    assert marks[0].get_color() == marks[-1].get_color()
    assert marks[0].get_marker() != marks[-1].get_marker()


def test_the_best_system_is_on_top_with_its_interval_and_its_seeds() -> None:
    (axes,) = intervals().axes
    drawn = [line.get_xydata().tolist() for line in axes.lines]
    assert drawn == [[[0.5, 0], [3.5, 0]], [[1, 0], [3, 0]], [[2, 0]], [[1, 1]], [[1, 1]]]
    assert axes.get_ylim() == (1.5, -0.5)
    assert [text.get_text() for text in axes.texts] == ["a", "b"]


def test_a_mean_lies_between_its_seeds() -> None:
    lines = costs().axes[0].lines
    assert lines[0].get_xydata().tolist() == [[1, 0], [3, 2]]
    assert lines[1].get_xydata().tolist() == [[2, 1]]


def test_long_names_are_cut() -> None:
    assert len(legend_text("x" * 100)) == 60
