"""SVG charts of compared systems: curves, dots and intervals, in the colours of their page.

A chart is a string for a page whose style holds `CHART_STYLE`; `chart_file` makes a file that needs
no page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from attnlab.plots.figure import title_text

NUM_COLOURS = 8
# As long as a figure has up to four kinds, both the dashes and the marks differ.
_DASHES = ("", "7 4", "2 3", "9 3 2 3")
_MARKS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",  # circle
    "M-3.6 -3.6H3.6V3.6H-3.6Z",  # square
    "M0 -4.6L4.4 3.4H-4.4Z",  # triangle
    "M0 -5L4.6 0L0 5L-4.6 0Z",  # diamond
)

# The colours of the page where there are any; a file is drawn on white.
CHART_STYLE = Markup("""
.s0 { --s: #0b62a8; } .s1 { --s: #c2410c; } .s2 { --s: #15803d; } .s3 { --s: #7c3aed; }
.s4 { --s: #be185d; } .s5 { --s: #0e7490; } .s6 { --s: #a16207; } .s7 { --s: #57606a; }
@media (prefers-color-scheme: dark) {
  :root:not(.file) .s0 { --s: #58a6ff; } :root:not(.file) .s1 { --s: #fb923c; }
  :root:not(.file) .s2 { --s: #4ade80; } :root:not(.file) .s3 { --s: #b794f6; }
  :root:not(.file) .s4 { --s: #f472b6; } :root:not(.file) .s5 { --s: #22d3ee; }
  :root:not(.file) .s6 { --s: #eab308; } :root:not(.file) .s7 { --s: #9198a1; }
}
.chart text { font-size: 12px; fill: var(--ink, #24292f); }
.chart .title { font-weight: 600; }
.chart .quiet { fill: var(--quiet, #57606a); }
.chart .grid { stroke: var(--line, #d0d7de); }
.chart .line { fill: none; stroke: var(--s, var(--quiet, #57606a)); stroke-width: 1.8; }
.chart .band { fill: var(--s); fill-opacity: .13; }
.chart .whole { fill: var(--s, var(--quiet, #57606a)); }
.chart .open { fill: none; stroke: var(--s, var(--quiet, #57606a)); stroke-opacity: .75; }
.chart .whisker { stroke: var(--s); stroke-width: 2.5; }
""")

_WIDTH, _HEIGHT = 420, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 30, 46
_LINE_HEIGHT = 14


@dataclass(frozen=True)
class Style:
    """How a system is drawn.

    colour: a number of a colour; the colours repeat after `NUM_COLOURS`.
    dash: of its lines.
    mark: of its points.
    """

    colour: int | None
    dash: int = 0
    mark: int = 0

    @property
    def css(self) -> str:
        """The class that sets its colour."""
        return "" if self.colour is None else f"s{self.colour % NUM_COLOURS}"


@dataclass(frozen=True, eq=False)
class Curve:
    """One value along an axis, measured once for each seed.

    x: P places.
    values: (seeds, P); NaN where nothing was measured.
    """

    label: str
    x: Sequence[float]
    values: ArrayLike
    style: Style


@dataclass(frozen=True)
class Dot:
    """One run. label: what a pointer that rests on it shows."""

    label: str
    x: float
    y: float
    style: Style


@dataclass(frozen=True)
class Scale:
    """The range of an axis with its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float], count: int = 5) -> Scale:
        """A scale with room around all values, and about `count` round ticks."""
        low, high = min(values), max(values)
        # Of equal values, and of such as differ by rounding.
        if high - low <= 1e-9 * max(abs(low), abs(high)):
            reach = abs(high) / 10 or 1.0
            low, high = low - reach, high + reach
        step = _round_step((high - low) / count)
        room = 0.04 * (high - low)
        first = math.ceil((low - room) / step)
        last = math.floor((high + room) / step)
        ticks = tuple(round(place * step, 12) for place in range(first, last + 1))
        return cls(low - room, high + room, ticks)

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high one."""
        return (value - self.low) / (self.high - self.low)


def _round_step(least: float) -> float:
    """The least of 1, 2, 5, 10, ... that is not smaller."""
    magnitude = 10.0 ** math.floor(math.log10(least))
    for factor in (1, 2, 5):
        if factor * magnitude >= least * 0.999:
            return factor * magnitude
    return 10 * magnitude


def curves_chart(
    title: str, curves: Sequence[Curve], axis: str, names: Sequence[str] | None = None
) -> ET.Element:
    """Curves with the range of their seeds, and marks where these are few.

    names: of the places 0, 1, ... of the axis, in lines; None for numbers.
    """
    xs: list[float] = []
    ys: list[float] = []
    for curve in curves:
        xs += [float(place) for place in curve.x]
        values = np.asarray(curve.values, dtype=np.float64)
        ys += values[~np.isnan(values)].tolist()
    chart = _Chart(title, axis, _axis_of(xs, names), Scale.of(ys), names)
    for curve in curves:
        chart.draw_curve(curve)
    return chart.svg


def dots_chart(
    title: str, dots: Sequence[Dot], axis: str, names: Sequence[str] | None = None
) -> ET.Element:
    """A dot for each run. names: as in `curves_chart`."""
    scale = _axis_of([dot.x for dot in dots], names)
    chart = _Chart(title, axis, scale, Scale.of([dot.y for dot in dots]), names)
    for dot in dots:
        chart.draw_mark(dot.x, dot.y, dot.style, dot.label)
    return chart.svg


def _axis_of(xs: Sequence[float], names: Sequence[str] | None) -> Scale:
    if names is None:
        return Scale.of(xs)
    every = math.ceil(len(names) / 8)  # more names than fit
    return Scale(-0.4, len(names) - 0.6, tuple(range(0, len(names), every)))


class _Chart:
    """An SVG element with axes, and what is drawn in it."""

    def __init__(
        self, title: str, axis: str, x: Scale, y: Scale, names: Sequence[str] | None
    ) -> None:
        self.x, self.y = x, y
        most_lines = max(name.count("\n") + 1 for name in names or [""])
        height = _HEIGHT + _LINE_HEIGHT * (most_lines - 1)
        self.svg = ET.Element("svg", {"class": "chart", "viewBox": f"0 0 {_WIDTH} {height}"})
        self.svg.set("role", "img")
        self.svg.set("aria-label", f"{title}, against {axis}")
        _text(self.svg, title, 4, 15, "title")
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        _text(self.svg, axis, middle, height - 6, "quiet", "middle")
        for tick in y.ticks:
            self._draw_y_tick(tick)
        for tick in x.ticks:
            words = f"{tick:g}" if names is None else names[int(tick)]
            self._draw_x_tick(tick, words)

    def _draw_y_tick(self, tick: float) -> None:
        """A line across the chart, with its number."""
        place = self._place_y(tick)
        self._line(_LEFT, _WIDTH - _RIGHT, place, place)
        _text(self.svg, f"{tick:g}", _LEFT - 6, place + 4, "quiet", "end")

    def _draw_x_tick(self, tick: float, words: str) -> None:
        """A short line below the chart, with words in lines."""
        place = self._place_x(tick)
        bottom = _HEIGHT - _BOTTOM
        self._line(place, place, bottom, bottom + 4)
        for number, line in enumerate(words.split("\n")):
            height = bottom + 17 + _LINE_HEIGHT * number
            _text(self.svg, title_text(line, 12), place, height, "", "middle")

    def _place_x(self, value: float) -> float:
        return round(_LEFT + self.x.share(value) * (_WIDTH - _LEFT - _RIGHT), 1)

    def _place_y(self, value: float) -> float:
        return round(_HEIGHT - _BOTTOM - self.y.share(value) * (_HEIGHT - _BOTTOM - _TOP), 1)

    def _line(self, x1: float, x2: float, y1: float, y2: float) -> None:
        line = ET.SubElement(self.svg, "line", {"class": "grid"})
        for name, place in (("x1", x1), ("x2", x2), ("y1", y1), ("y2", y2)):
            line.set(name, str(place))

    def draw_curve(self, curve: Curve) -> None:
        every_value = np.asarray(curve.values, dtype=np.float64)  # (seeds, P)
        is_measured = ~np.isnan(every_value).all(axis=0)  # (P,)
        values = every_value[:, is_measured]
        xs = np.asarray(curve.x, dtype=np.float64)[is_measured].tolist()

        group = ET.SubElement(self.svg, "g", {"class": curve.style.css})
        ET.SubElement(group, "title").text = title_text(curve.label)
        if len(values) > 1:
            above = self._points(xs, np.nanmax(values, axis=0))
            below = self._points(xs, np.nanmin(values, axis=0))
            band = f"M{'L'.join([*above, *below[::-1]])}Z"
            ET.SubElement(group, "path", {"class": "band", "d": band})
        means = np.nanmean(values, axis=0)
        line = {"class": "line", "d": "M" + "L".join(self._points(xs, means))}
        if dash := _DASHES[curve.style.dash % len(_DASHES)]:
            line["stroke-dasharray"] = dash
        ET.SubElement(group, "path", line)
        if len(xs) <= 30:
            for x, mean in zip(xs, means.tolist(), strict=True):
                self.draw_mark(x, mean, curve.style, f"{curve.label}: {mean:.4g}", group)

    def _points(self, xs: Sequence[float], ys: NDArray[np.float64]) -> list[str]:
        pairs = zip(xs, ys.tolist(), strict=True)
        return [f"{self._place_x(x)} {self._place_y(y)}" for x, y in pairs]

    def draw_mark(
        self, x: float, y: float, style: Style, label: str, group: ET.Element | None = None
    ) -> None:
        """A point, into a group of the chart or the chart itself. label: see `Dot`."""
        above = self.svg if group is None else group
        mark = ET.SubElement(above, "path", {"class": f"whole {style.css}".strip()})
        mark.set("d", _mark(style))
        mark.set("transform", f"translate({self._place_x(x)} {self._place_y(y)})")
        ET.SubElement(mark, "title").text = title_text(label)


def _mark(style: Style) -> str:
    return _MARKS[style.mark % len(_MARKS)]


def _text(
    into: ET.Element, text: str, x: float, y: float, css: str = "", anchor: str = "start"
) -> None:
    attributes = {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor}
    if css:
        attributes["class"] = css
    ET.SubElement(into, "text", attributes).text = title_text(text)


def interval_row(
    values: Sequence[float],
    mean: float,
    ends: tuple[float, float] | None,
    style: Style,
    scale: Scale,
    words: str,
) -> ET.Element:
    """The seeds as rings, their mean as a mark and its interval as a line, as wide as its place.

    words: the same for who does not see it.
    """
    row = ET.Element(
        "svg",
        {"class": f"chart row {style.css}".strip(), "height": "22", "role": "img"},
    )
    row.set("width", "100%")
    row.set("aria-label", words)
    for tick in scale.ticks:
        at = _percent(scale.share(tick))
        ET.SubElement(row, "line", {"class": "grid", "x1": at, "x2": at, "y1": "0", "y2": "22"})
    if ends is not None:
        low, high = (_percent(scale.share(end)) for end in ends)
        line = {"class": "whisker", "x1": low, "x2": high, "y1": "11", "y2": "11"}
        ET.SubElement(row, "line", line)
    if len(values) > 1:
        for value in values:
            ring = {"class": "open", "cx": _percent(scale.share(value)), "cy": "11", "r": "4"}
            ET.SubElement(row, "circle", ring)
    place = {"x": _percent(scale.share(mean)), "y": "11", "overflow": "visible"}
    at_mean = ET.SubElement(row, "svg", place)
    ET.SubElement(at_mean, "path", {"class": "whole", "d": _mark(style)})
    return row


def axis_row(scale: Scale) -> ET.Element:
    """The numbers below rows of this scale."""
    row = ET.Element("svg", {"class": "chart row", "height": "18", "aria-hidden": "true"})
    row.set("width", "100%")
    for tick in scale.ticks:
        at = {"x": _percent(scale.share(tick)), "y": "13", "text-anchor": "middle"}
        ET.SubElement(row, "text", {**at, "class": "quiet"}).text = f"{tick:g}"
    return row


def swatch(style: Style, is_line: bool = True) -> ET.Element:
    """A style for a legend: a line with its mark, or the mark alone."""
    svg = ET.Element("svg", {"class": f"chart swatch {style.css}".strip(), "aria-hidden": "true"})
    svg.set("viewBox", "0 0 32 14")
    svg.set("width", "32")
    svg.set("height", "14")
    if is_line:
        line = {"class": "line", "d": "M1 7H31"}
        if dash := _DASHES[style.dash % len(_DASHES)]:
            line["stroke-dasharray"] = dash
        ET.SubElement(svg, "path", line)
    mark = {"class": "whole", "d": _mark(style), "transform": "translate(16 7)"}
    ET.SubElement(svg, "path", mark)
    return svg


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def inline(chart: ET.Element) -> Markup:
    """The chart as a part of a page."""
    return Markup(ET.tostring(chart, encoding="unicode"))  # ElementTree escapes texts


def rows_chart(title: str, rows: Sequence[tuple[str, ET.Element]], scale: Scale) -> ET.Element:
    """Interval rows with their names, as one chart for a file."""
    height = 24 * len(rows) + 54
    chart = ET.Element("svg", {"class": "chart", "viewBox": f"0 0 {2 * _WIDTH} {height}"})
    _text(chart, title, 4, 15, "title")
    for number, (name, row) in enumerate([*rows, ("", axis_row(scale))]):
        top = 28 + 24 * number
        _text(chart, title_text(name, 44), 4, top + 15)
        place = ET.SubElement(chart, "svg", {"x": "300", "y": str(top), "width": "500"})
        place.set("height", "22")
        place.append(row)
    return chart


def chart_file(charts: Sequence[ET.Element], legend: Sequence[tuple[Style, str]] = ()) -> bytes:
    """Charts side by side with a legend below, as an SVG file on white."""
    sizes = [chart.get("viewBox", "").split() for chart in charts]
    width = sum(int(size[2]) for size in sizes)
    charts_height = max(int(size[3]) for size in sizes)
    columns = max(1, width // _WIDTH)
    height = charts_height + 20 * math.ceil(len(legend) / columns) + 8

    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "file"})
    root.set("viewBox", f"0 0 {width} {height}")
    root.set("width", str(width))
    root.set("height", str(height))
    root.set("font-family", "system-ui, sans-serif")
    ET.SubElement(root, "style").text = str(CHART_STYLE)
    ET.SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": "#fff"})
    left = 0
    for chart, size in zip(charts, sizes, strict=True):
        placed = ET.SubElement(root, "svg", {"x": str(left), "y": "0"})
        placed.set("width", size[2])
        placed.set("height", size[3])
        placed.append(chart)
        left += int(size[2])
    for number, (style, label) in enumerate(legend):
        x = _WIDTH * (number % columns) + 8
        y = charts_height + 20 * (number // columns) + 4
        entry = ET.SubElement(root, "svg", {"class": "chart", "x": str(x), "y": str(y)})
        entry.set("width", str(_WIDTH))
        entry.set("height", "18")
        entry.append(swatch(style))
        _text(entry, title_text(label, 50), 40, 12)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"
