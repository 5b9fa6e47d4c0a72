"""Running a study: its models trained and measured, at each look until it is decided."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.studies.measurements import Point
from attnlab.studies.study import Measurements, Study, measurements_of
from attnlab.studies.study_sweep import train_as_sweep


@dataclass(frozen=True)
class Run:
    """What the user wants of a study.

    path: of its file.
    seeds: how many; None for as many as the study says.
    settings: of all experiments. of_sweep: of a launcher.
    folder: of the study's results.
    """

    path: Path
    seeds: int | None
    settings: Sequence[str]
    of_sweep: Sequence[str]
    folder: Path


def run_study(study: Study, run: Run) -> Measurements | None:
    """Train what is missing and measure it; None where other parts still train some of it.

    A study with looks trains the seeds of the next look only where the last one did not end it.

    Raises ExperimentError with every problem, before anything is trained.
    """
    points = study.points(run.seeds, run.settings)
    measurements = None
    for count in study.counts_of_seeds(run.seeds):
        of_look = [point for point in points if point.seed < study.first_seed + count]
        measurements = _measured(study, run, of_look)
        if measurements is None or not study.looks:
            break
        look = study.look(measurements.rows, measurements.sentences)
        print(f"{look.seeds} seeds: {look.why}", file=sys.stderr)
        if look.ends:
            break
    return measurements


def _measured(study: Study, run: Run, points: Sequence[Point]) -> Measurements | None:
    if run.of_sweep:
        train_as_sweep(points, run.of_sweep, run.folder)
        missing = sum(not point.is_trained for point in points)
        if missing:  # they are in other parts
            print(f"{missing} of {len(points)} points are not trained yet, so nothing is measured")
            return None
    return measurements_of(study, run.path, points, run.settings)
