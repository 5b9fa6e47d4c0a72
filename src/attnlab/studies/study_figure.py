"""The figure of a study: curves over places, or an interval for each system."""

from __future__ import annotations

import pandas as pd  # type: ignore[import-untyped]
from matplotlib.figure import Figure

from attnlab.evaluation.measures import Measure
from attnlab.plots.systems import SeededCurve, SystemInterval, interval_panels, seeded_panels
from attnlab.studies.expectations import mean_ends
from attnlab.studies.measured_rows import MeasuredRows, Rows
from attnlab.studies.measurements import AXES
from attnlab.studies.study import Study
from attnlab.tasks.saved import measure_named


def figure_of(study: Study, rows: Rows) -> Figure:
    """Curves where the rows have places, else intervals: a panel for each measure.

    Where a rule foretells failures: the early values of the seeds that failed, and of the others.
    """
    if study.foretelling is not None:
        return interval_panels({study.foretelling.place: _early_values(study.measured(rows))})
    if study.measurement in AXES:
        return seeded_panels(_curves(study, rows), AXES[study.measurement])
    return interval_panels(_intervals(study, study.measured(rows)))


def _intervals(study: Study, measured: MeasuredRows) -> dict[str, list[SystemInterval]]:
    """{heading of a measure: an interval for each system}."""
    panels: dict[str, list[SystemInterval]] = {}
    for measure in map(measure_named, study.measures):
        for number, name in enumerate(measured.systems):
            interval = _shown_interval(measured, name, measure, number)
            if interval is not None:
                panels.setdefault(measure.heading, []).append(interval)
    return panels


def _early_values(measured: MeasuredRows) -> list[SystemInterval]:
    """A row for the seeds of each system that learnt, and one for those that failed."""
    shown = []
    for number, name in enumerate(measured.systems):
        foretold = measured.foretold(name)
        factor = measure_named(foretold.rule.measure).factor
        for fate, early in (("learnt", foretold.learnt), ("failed", foretold.failed)):
            values = [factor * value for value in early.values()]
            if values:
                mean = sum(values) / len(values)
                label, note = f"{name}: {fate}", f"{len(values)} seeds"
                shown.append(SystemInterval(label, values, mean, None, None, note, number))
    return shown


def _curves(study: Study, rows: Rows) -> dict[str, list[SeededCurve]]:
    """{heading of a measure: a curve for each system}."""
    panels: dict[str, list[SeededCurve]] = {}
    for measure in map(measure_named, study.measures):
        for number, name in enumerate(study.measured(rows).systems):
            curve = _shown_curve(rows, name, measure, number)
            panels.setdefault(measure.heading, []).append(curve)
    return panels


def _shown_interval(
    measured: MeasuredRows, system: str, measure: Measure, number: int
) -> SystemInterval | None:
    """None where no seed learnt, or the system lacks the measure.

    number: of the system, which selects its colour.
    """
    if measured.lacks(system, measure.name):
        return None
    of_seeds = measured.by_seed(system, measure.name).values()
    values = [measure.factor * value for value in of_seeds]
    if not values:
        return None
    low, high = mean_ends(values) or (None, None)
    mean = sum(values) / len(values)
    return SystemInterval(system, values, mean, low, high, note="", number=number)


def _shown_curve(rows: Rows, system: str, measure: Measure, number: int) -> SeededCurve:
    """number: of the system, which selects its colour."""
    of_system = pd.DataFrame([row for row in rows if row["system"] == system])
    by_seed = of_system.pivot(index="seed", columns="at", values=measure.name)
    places = by_seed.columns.tolist()
    return SeededCurve(system, places, measure.factor * by_seed.to_numpy(float), number)
