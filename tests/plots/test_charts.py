"""SVG charts of compared systems."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from attnlab.plots.charts import (
    Curve,
    Dot,
    Scale,
    Style,
    chart_file,
    curves_chart,
    dots_chart,
    inline,
    interval_row,
    rows_chart,
)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0, 100.0], (0, 20, 40, 60, 80, 100)),
        ([0.31, 0.36], (0.31, 0.32, 0.33, 0.34, 0.35, 0.36)),
        ([5.0, 5.0], (4.6, 4.8, 5.0, 5.2, 5.4)),
    ],
)
def test_scale_has_round_ticks_in_its_range(values: list[float], ticks: tuple[float, ...]) -> None:
    scale = Scale.of(values)
    assert scale.ticks == pytest.approx(ticks)
    assert all(scale.low <= each <= scale.high for each in (*values, *scale.ticks))


def test_curve_has_the_mean_of_its_seeds_and_their_range() -> None:
    curve = Curve("dot", [0, 10], np.array([[1.0, 3.0], [3.0, np.nan]]), Style(1, dash=1, mark=2))
    chart = curves_chart("BLEU", [curve], "step")
    (group,) = chart.findall("g")
    assert group.get("class") == "s1"
    band, line, *marks = group.findall("path")
    assert (band.get("class"), line.get("class"), len(marks)) == ("band", "line", 2)
    assert line.get("stroke-dasharray")
    titles = [mark.findtext("title") for mark in marks]
    assert titles == ["dot: 2", "dot: 3"]


def test_dots_have_a_label_each_and_names_on_the_axis() -> None:
    dots = [Dot("run 1", 0, 3.0, Style(0)), Dot("<b>", 1, 5.0, Style(1))]
    chart = dots_chart("BLEU", dots, "attention", ["dot", "none"])
    texts = [text.text for text in chart.findall("text")]
    assert {"BLEU", "attention", "dot", "none"} <= set(texts)
    assert "&lt;b&gt;" in inline(chart)
    assert "<b>" not in inline(chart)


def test_interval_row_places_interval_seeds_and_mean() -> None:
    scale = Scale(0.0, 10.0, (0.0, 5.0, 10.0))
    row = interval_row([4.0, 6.0], 5.0, (2.0, 8.0), Style(0), scale, "BLEU 5")
    (whisker,) = [line for line in row.findall("line") if line.get("class") == "whisker"]
    assert (whisker.get("x1"), whisker.get("x2")) == ("20.00%", "80.00%")
    assert [ring.get("cx") for ring in row.findall("circle")] == ["40.00%", "60.00%"]
    assert [mean.get("x") for mean in row.findall("svg")] == ["50.00%"]
    alone = interval_row([5.0], 5.0, None, Style(0), scale, "BLEU 5")
    assert alone.findall("circle") == []


def test_chart_file_is_valid_svg_with_its_legend_and_the_same_bytes() -> None:
    def made() -> bytes:
        scale = Scale.of([1.0, 3.0])
        rows = [("학교 <&>", interval_row([2.0], 2.0, None, Style(0), scale, "2"))]
        return chart_file([rows_chart("BLEU ↑", rows, scale)], [(Style(0), "dot")])

    root = ET.fromstring(made())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"BLEU ↑", "학교 <&>", "dot"} <= set(texts)
    assert made() == made()
