"""Figures of a comparison: intervals, learning curves, quality by length, and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from attnlab.evaluation.measures import Measure, Measures
from attnlab.plots.charts import (
    NUM_COLOURS,
    Curve,
    Dot,
    Scale,
    Style,
    axis_row,
    chart_file,
    curves_chart,
    dots_chart,
    interval_row,
    rows_chart,
)
from attnlab.plots.curves import range_text
from attnlab.report.compared_runs import ComparedRun
from attnlab.report.factors import Factors, cell_means, factor_names
from attnlab.report.findings import Findings
from attnlab.report.systems import System
from attnlab.report.validations import first_validated

# Measures that evaluations have by source length.
_BY_LENGTH = ("bleu", "exact_match", "accuracy")
_LENGTH_AXIS = "source tokens without <eos>; below, number of sentences"
_MOST_PARAMETERS = 6  # charts of settings


@dataclass(frozen=True)
class Legend:
    """What one property of the styles stands for.

    heading: the factor; empty where it says nothing.
    is_line: whether the entries are lines and not points.
    """

    heading: str
    entries: list[tuple[Style, str]]


def styles_of(systems: Sequence[System]) -> dict[str, Style]:
    """{system: its style}: a colour for each value of the first factor.

    Dashes stand for the values of the second factor, and marks for those of all others; marks for
    the second factor as well where there is no third one.
    """
    names = factor_names(systems)
    if len(names) < 2:
        styles = {}
        for system in systems:
            again = system.number // NUM_COLOURS  # where colours repeat
            styles[system.name] = Style(system.number, again, again)
        return styles

    by_number = sorted(systems, key=lambda system: system.number)
    first, second, *others = names
    marked = others or [second]
    colours = _numbered([_choice(system, first) for system in by_number])
    dashes = _numbered([_choice(system, second) for system in by_number])
    marks = _numbered([_choices(system, marked) for system in by_number])
    styles = {}
    for system in systems:
        styles[system.name] = Style(
            colour=colours[_choice(system, first)],
            dash=dashes[_choice(system, second)],
            mark=marks[_choices(system, marked)],
        )
    return styles


def legends_of(systems: Sequence[System], styles: Mapping[str, Style]) -> list[Legend]:
    """What the styles stand for: an entry for each system, or for each value of a factor."""
    by_number = sorted(systems, key=lambda system: system.number)
    names = factor_names(systems)
    if len(names) < 2:
        return [_legend("", {system.name: styles[system.name] for system in by_number})]

    first, second, *others = names
    of_first: dict[str, Style] = {}
    of_second: dict[str, Style] = {}
    of_others: dict[str, Style] = {}
    for system in by_number:
        style = styles[system.name]
        of_first.setdefault(_choice(system, first), Style(style.colour))
        mark = 0 if others else style.mark
        of_second.setdefault(_choice(system, second), Style(None, style.dash, mark))
        of_others.setdefault(_choices(system, others), Style(None, 0, style.mark))
    legends = [_legend(first, of_first), _legend(second, of_second)]
    if others:
        legends.append(_legend(" · ".join(others), of_others))
    return legends


def _legend(heading: str, styles: Mapping[str, Style]) -> Legend:
    """styles: {what it stands for: the style}, in the order of the entries."""
    return Legend(heading, [(style, value) for value, style in styles.items()])


def _numbered(values: Sequence[str]) -> dict[str, int]:
    """{value: its number}, in the order in which the values come first."""
    distinct = dict.fromkeys(values)
    return {value: number for number, value in enumerate(distinct)}


def _choice(system: System, name: str) -> str:
    return system.choices.get(name, "")


def _choices(system: System, names: Sequence[str]) -> str:
    return " · ".join(_choice(system, name) for name in names)


@dataclass(frozen=True, eq=False)
class Figures:
    """The charts of a comparison; lists are empty where there is nothing to draw.

    rows: {system: its interval}.
    axis: below them.
    """

    styles: Mapping[str, Style]
    legends: list[Legend]
    rows: Mapping[str, Element]
    axis: Element
    learning: list[Element]
    length: list[Element]
    interaction: list[Element]
    interaction_legend: Legend
    parameters: list[Element]


def figures_of(findings: Findings, factors: Factors) -> Figures:
    """The charts of a comparison, by the wanted measure."""
    measure, systems = findings.measure, findings.systems
    styles = styles_of(systems)
    scale = interval_scale(findings, measure)
    interaction, interaction_legend = _interaction(findings, factors, measure)
    return Figures(
        styles=styles,
        legends=legends_of(systems, styles),
        rows=interval_rows(findings, measure, scale, styles),
        axis=axis_row(scale),
        learning=_learning(findings, measure, styles),
        length=_by_length(systems, findings.measures, styles),
        interaction=interaction,
        interaction_legend=interaction_legend,
        parameters=_parameters(findings, factors, measure, styles),
    )


def figure_files(findings: Findings, factors: Factors) -> dict[str, bytes]:
    """{file name: content} of the figures that stand alone, such as in a paper."""
    measure = findings.measure
    figures = figures_of(findings, factors)  # of their own: an element has one place
    legend = [(style, name) for name, style in figures.styles.items()]
    scale = interval_scale(findings, measure)
    systems = rows_chart(f"{measure.heading}, test", list(figures.rows.items()), scale)
    files = {"systems.svg": chart_file([systems])}
    if figures.learning:
        files["learning.svg"] = chart_file(figures.learning, legend)
    if figures.length:
        files["length.svg"] = chart_file(figures.length, legend)
    return files


def interval_scale(findings: Findings, measure: Measure) -> Scale:
    """A scale for the seeds and the intervals of all systems."""
    values = []
    for system in findings.systems:
        values += system.measured(measure.name)
        found = findings.estimates[measure.name][system.name]
        if found.low is not None and found.high is not None:
            values += [found.low, found.high]
    return Scale.of([value * measure.factor for value in values])


def interval_rows(
    findings: Findings, measure: Measure, scale: Scale, styles: Mapping[str, Style]
) -> dict[str, Element]:
    """{system: its seeds, their mean and its interval}."""
    rows = {}
    for system in findings.systems:
        found = findings.estimates[measure.name][system.name]
        ends = None
        words = f"{measure.label} {measure.shown(found.mean)}"
        if found.low is not None and found.high is not None:
            ends = (found.low * measure.factor, found.high * measure.factor)
            words += f", interval {measure.shown(found.low)} to {measure.shown(found.high)}"
        values = [value * measure.factor for value in system.measured(measure.name)]
        mean = found.mean * measure.factor
        rows[system.name] = interval_row(values, mean, ends, styles[system.name], scale, words)
    return rows


def _learning(findings: Findings, measure: Measure, styles: Mapping[str, Style]) -> list[Element]:
    """Validations over the steps: of the quality and of the loss, where they were logged."""
    logged = _logged_metrics(findings.systems)
    quality = first_validated([measure.name, *_BY_LENGTH], logged)
    loss = first_validated(["token_nll", "nll"], logged)

    charts = []
    for name in dict.fromkeys([quality, loss]):  # the wanted measure may be the loss
        if name is None:
            continue
        heading = findings.measures.named(name.rpartition("/")[2]).heading
        fed = ", reference fed" if "teacher_forced" in name else ""
        points = {}
        for system in findings.systems:
            points[system] = [dict(run.history.get(name, ())) for run in system.runs]
        curves = _curves(points, styles)
        charts.append(curves_chart(f"{heading} (validation{fed})", curves, "step"))
    return charts


def _logged_metrics(systems: Sequence[System]) -> set[str]:
    """The names of the metrics that any run has logged."""
    logged = set()
    for system in systems:
        for run in system.runs:
            logged |= {name for name, points in run.history.items() if points}
    return logged


def _by_length(
    systems: Sequence[System], measures: Measures, styles: Mapping[str, Style]
) -> list[Element]:
    """Test measures by source length, where the evaluations have them."""
    sentences = _sentences_by_length(systems)
    ranges = sorted(sentences)
    places = {ends: place for place, ends in enumerate(ranges)}
    names = [f"{range_text(*ends)}\n{sentences[ends]:,}" for ends in ranges]

    charts = []
    for name in _BY_LENGTH:
        points = {}
        for system in systems:
            points[system] = [_points_by_length(run, name, places) for run in system.runs]
        curves = _curves(points, styles)
        if curves:
            heading = measures.named(name).heading
            charts.append(curves_chart(f"{heading} (test)", curves, _LENGTH_AXIS, names))
    return charts


def _sentences_by_length(systems: Sequence[System]) -> dict[tuple[int, int], int]:
    """{(from, to): number of sentences} of each range of lengths.

    Where test sets differ, the number is that of the first run.
    """
    sentences: dict[tuple[int, int], int] = {}
    for system in systems:
        for run in system.runs:
            for row in run.evaluation.by_length:
                sentences.setdefault((row["from"], row["to"]), row["sentences"])
    return sentences


def _points_by_length(
    run: ComparedRun, measure: str, places: Mapping[tuple[int, int], int]
) -> dict[int, float]:
    """{place of a range of lengths: the run's value of the measure}."""
    points = {}
    for row in run.evaluation.by_length:
        if row.get(measure) is not None:
            points[places[row["from"], row["to"]]] = row[measure]
    return points


def _curves(
    points: Mapping[System, Sequence[Mapping[int, float]]], styles: Mapping[str, Style]
) -> list[Curve]:
    """A curve for each system that was measured, over all places of any seed.

    points: of each system {place on the x axis: value} for each seed.
    """
    curves = []
    for system, of_seeds in points.items():
        places = sorted(set[int]().union(*of_seeds))
        if not places:
            continue
        # NaN leaves a gap where a seed has no value.
        values = np.full((len(of_seeds), len(places)), np.nan)
        for seed, of_seed in enumerate(of_seeds):
            values[seed] = [of_seed.get(place, np.nan) for place in places]
        curves.append(Curve(system.name, places, values, styles[system.name]))
    return curves


def _interaction(
    findings: Findings, factors: Factors, measure: Measure
) -> tuple[list[Element], Legend]:
    """The means of the first two factors: a line for each value of the first one."""
    nothing: tuple[list[Element], Legend] = ([], Legend("", []))
    if len(factors.factors) < 2:
        return nothing
    first, second = factors.factors[:2]
    means = cell_means(findings, first.name, second.name)
    if not means:
        return nothing

    values = list(dict.fromkeys(value for value, _ in means))
    places = list(dict.fromkeys(place for _, place in means))
    styles = {value: Style(number) for number, value in enumerate(values)}
    curves = []
    for value, style in styles.items():
        shown = [means[value, place] * measure.factor for place in places]
        curves.append(Curve(value, list(range(len(places))), [shown], style))
    chart = curves_chart(f"{measure.heading} (test)", curves, second.name, places)
    return [chart], _legend(first.name, styles)


def _parameters(
    findings: Findings, factors: Factors, measure: Measure, styles: Mapping[str, Style]
) -> list[Element]:
    """The wanted measure against each setting that varies, where no table of factors says it.

    That is where a setting is a number of several values, or was not combined with all others.
    """
    in_tables = {factor.name for factor in factors.factors if factor.levels}
    runs: list[ComparedRun] = []
    for system in findings.systems:
        runs += system.runs

    charts = []
    for name in factors.names:
        numbers = _as_numbers([run.choices.get(name, "") for run in runs])
        is_axis = numbers is not None and len(set(numbers)) > 2
        is_in_ranking = len(factors.names) == 1
        if is_axis or not (name in in_tables or is_in_ranking):
            measured = [run for run in runs if measure.name in run.measured]
            charts.append(_parameter_chart(name, measured, measure, styles, is_axis))
    return charts[:_MOST_PARAMETERS]


def _parameter_chart(
    name: str,
    runs: Sequence[ComparedRun],
    measure: Measure,
    styles: Mapping[str, Style],
    is_axis: bool,
) -> Element:
    """A dot for each run; the axis is logarithmic where its numbers span a factor of 50."""
    texts = [run.choices.get(name, "") for run in runs]
    numbers = _as_numbers(texts) if is_axis else None
    names: list[str] | None = None
    axis = name
    if numbers is None:
        names = list(dict.fromkeys(texts))
        places = [float(names.index(text)) for text in texts]
    elif min(numbers) > 0 and max(numbers) / min(numbers) >= 50:
        axis = f"log10 of {name}"
        places = [float(np.log10(number)) for number in numbers]
    else:
        places = numbers

    dots = []
    for run, place in zip(runs, places, strict=True):
        value = run.measured[measure.name]
        label = f"{run.name}: {measure.shown(value)}"
        dots.append(Dot(label, place, value * measure.factor, styles[run.system]))
    return dots_chart(f"{measure.heading} (test)", dots, axis, names)


def _as_numbers(texts: Sequence[str]) -> list[float] | None:
    """The texts as numbers; None where one is none."""
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None
