"""Figures of curves, histograms and compared systems.

The tests check the drawn values, the fonts, and that the bytes are the same each time.
"""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.figure import Figure

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.curves import curve_panels, length_curve, ranges_without
from attnlab.plots.figure import COLOURS, png_bytes
from attnlab.plots.heat_map_figure import heat_map_figure
from attnlab.plots.histograms import length_histogram
from attnlab.plots.sentences import coloured_sentences
from attnlab.plots.systems import (
    SeededCurve,
    SystemInterval,
    interval_panels,
    seeded_panels,
)


def curves(count: int) -> list[SeededCurve]:
    return [
        SeededCurve(
            f"체계 {i}",
            [10, 20],
            np.array([[i, i + 1.0], [i, i + 2.0]]),
            i,
            dashed=i >= len(COLOURS),
        )
        for i in range(count)
    ]


def panels() -> Figure:
    return seeded_panels({"BLEU ↑": curves(2), "NLL ↓": curves(3)}, "step")


def intervals() -> Figure:
    systems = [
        SystemInterval("bahdanau $x$", [1.0, 3.0], 2.0, 0.5, 3.5, "a", 0),
        SystemInterval("어텐션 없음", [1.0], 1.0, None, None, "b", 1),
    ]
    return interval_panels({"BLEU ↑, test": systems})


def test_seeded_panels_share_one_legend() -> None:
    figure = panels()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "체계 0",
        "체계 1",
        "체계 2",
    ]
    line = figure.axes[0].lines[1]
    np.testing.assert_array_equal(line.get_xydata(), [[10, 1], [20, 2.5]])


def test_systems_beyond_the_last_colour_get_dashes() -> None:
    axes = seeded_panels({"": curves(len(COLOURS) + 1)}, "step").axes[0]
    first, last = axes.lines[0], axes.lines[-1]
    assert first.get_color() == last.get_color()
    assert (first.get_linestyle(), last.get_linestyle()) == ("-", "--")


def test_interval_figure_shows_best_system_first_with_interval_and_seeds() -> None:
    (axes,) = intervals().axes
    drawn = [line.get_xydata().tolist() for line in axes.lines]
    assert drawn == [[[0.5, 0], [3.5, 0]], [[1, 0], [3, 0]], [[2, 0]], [[1, 1]], [[1, 1]]]
    assert axes.get_ylim() == (1.5, -0.5)
    assert [text.get_text() for text in axes.texts] == ["a", "b"]


def length_figure() -> Figure:
    curve = SeededCurve("attention", [4, 5, 6], [[100.0, 50.0, np.nan], [80.0, 70.0, np.nan]], 0)
    return seeded_panels({"BLEU": [curve]}, "source tokens")


def test_seeded_curve_draws_mean_line_and_range_band() -> None:
    (axes,) = length_figure().axes
    (line,) = axes.lines
    # Where no seed has a value there is no point.
    np.testing.assert_array_equal(line.get_xydata(), [[4, 90], [5, 60]])
    (band,) = (
        artist for artist in axes.collections if isinstance(artist, FillBetweenPolyCollection)
    )
    edges = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert edges == {(4, 80), (4, 100), (5, 50), (5, 70)}


def test_length_curve_has_a_gap_where_bleu_is_undefined() -> None:
    rows = []
    for length, bleu in ((2, None), (4, 20.0), (6, 40.0)):
        rows.append({"from": length, "to": length, "sentences": 1, "bleu": bleu, "exact_match": 1})
    bleu_curve, exact_match_curve = length_curve(rows).axes[0].lines
    np.testing.assert_array_equal(bleu_curve.get_ydata(), [np.nan, 20, 40])
    np.testing.assert_array_equal(exact_match_curve.get_ydata(), [100, 100, 100])
    (line,) = length_curve(rows[:1]).axes[0].lines
    assert line.get_label() == "exact match (%)"


def test_ranges_without_a_measure_are_named_once_and_neighbours_together() -> None:
    rows = [{"from": low, "to": low + 1, "bleu": None} for low in (3, 1, 8)] * 2
    assert ranges_without("bleu", [*rows, {"from": 5, "to": 7, "bleu": 0.0}]) == ["1–4", "8–9"]
    assert ranges_without("accuracy", rows) == []


def test_length_histogram_has_a_bar_for_each_length() -> None:
    for patch in length_histogram({"source": {3: 5, 4: 1, 7: 2}}).axes[0].patches:
        data = patch.get_data()
        assert (data.values.tolist(), data.edges.tolist()) == (
            [5, 1, 0, 0, 2],
            [2.5, 3.5, 4.5, 5.5, 6.5, 7.5],
        )


def _figures() -> dict[str, Figure | None]:
    history = {
        "train/token_nll": [(10, 5.0), (20, 3.0)],
        "validation/teacher_forced/token_nll": [(20, 3.5)],
        "validation/teacher_forced/perplexity": [(20, 33.1), (40, 1.2)],
        "validation/free_running/bleu": [(20, 1.0)],
    }
    rows = [{"from": 1, "to": 5, "sentences": 10, "bleu": 20.0, "exact_match": 0.5}]
    return {
        "heat map": heat_map_figure(
            AttentionMap(["14.", "<eos>"], ["14일", "<eos>"], np.eye(2), "14. → 14일")
        ),
        "coloured sentences": coloured_sentences(
            [AttentionMap(["14일"], ["날짜"], np.ones((1, 1)), "날짜")]
        ),
        **curve_panels(history),
        "histogram": length_histogram({"source": {3: 1, 5: 2}, "target": {}}),
        "length curve": length_curve(rows),
        "panels": panels(),
        "intervals": intervals(),
        "length generalisation": length_figure(),
    }


def test_figures_have_the_same_bytes_and_a_glyph_for_every_character() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "Glyph ... missing from font(s)" is a warning
        for (name, first), second in zip(_figures().items(), _figures().values(), strict=True):
            assert first is not None
            assert second is not None
            png = png_bytes(first)
            assert png == png_bytes(second), name
            assert b"Software" not in png


def test_learning_curves_show_all_points() -> None:
    figures = _figures()
    (loss,) = figures["loss (nats a token)"].axes
    (perplexity,) = figures["perplexity (validation, reference fed)"].axes
    (bleu,) = figures["BLEU and chrF (validation, free-running)"].axes
    assert [line.get_xydata().tolist() for line in loss.lines] == [[[10, 5], [20, 3]], [[20, 3.5]]]
    assert perplexity.get_yscale() == "log"
    perplexity.figure.draw_without_rendering()
    ticks = [label.get_text() for label in perplexity.get_yticklabels(which="both")]
    assert {"2", "5", "10"} <= set(ticks)
    assert not any("$" in tick for tick in ticks)
    assert bleu.lines[0].get_xydata().tolist() == [[20, 1]]
    assert curve_panels({"train/learning_rate": [(1, 0.1)]}) == {}


def test_learning_curves_title_says_what_is_drawn_of_a_foreign_task() -> None:
    """A tagger has no F1 over classes, and a metric that no panel of ours knows."""
    points = [(10, 0.2), (20, 0.5)]
    panels = curve_panels({"validation/accuracy": points, "validation/span_f1": points})
    assert list(panels) == ["accuracy (validation)", "span f1 (validation)"]
