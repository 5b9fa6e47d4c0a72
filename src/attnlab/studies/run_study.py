"""Running a study: its models trained and measured, at each look until it is decided."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.studies.measured_rows import Rows
from attnlab.studies.measurements import MEASUREMENTS, Point, Row, train_each
from attnlab.studies.sentence_scatter import sentence_covariances
from attnlab.studies.study import Study
from attnlab.studies.study_files import Measurements, conditions
from attnlab.studies.study_result import look_of
from attnlab.studies.study_sweep import train_as_sweep
from attnlab.studies.tuning import Trial, Tuned, choose_values


@dataclass(frozen=True)
class StudyRequest:
    """What the user wants of a study.

    path: of its file.
    seeds: how many; None for as many as the study says.
    settings: of all experiments.
    launcher_settings: of the sweep that trains them; empty to train them here, one by one.
    folder: of the study's results.
    """

    path: Path
    seeds: int | None
    settings: Sequence[str]
    launcher_settings: Sequence[str]
    folder: Path


def run_study(study: Study, request: StudyRequest) -> Measurements | None:
    """Train what is missing and measure it; None where other parts still train some of it.

    A study that tunes a setting chooses its values first. A study with looks trains the seeds of
    the next look only where the last one did not end it.

    Raises ExperimentError with every problem, before anything is trained.
    """
    points = study.points(request.seeds, request.settings)
    trials = study.trials(request.settings)
    chosen = None
    if study.tuning is not None:
        if not _train_by_launcher(request, [point for trial in trials for point in trial.points]):
            return None
        chosen = choose_values(study.tuning, trials)
        points = study.points(request.seeds, request.settings, chosen)

    measurements = None
    for count in study.counts_of_seeds(request.seeds):
        of_look = [point for point in points if point.seed < study.first_seed + count]
        if not _train_by_launcher(request, of_look):
            return None
        measurements = _train_and_measure_points(study, request, of_look, trials, chosen)
        if not study.looks:
            break
        look = look_of(study, measurements.rows, measurements.sentences)
        print(f"{look.seeds} seeds: {look.why}", file=sys.stderr)
        if look.ends:
            break
    return measurements


def _train_by_launcher(request: StudyRequest, points: Sequence[Point]) -> bool:
    """Train the points by the user's launcher, if there is one, and say whether the study goes on.

    It does not where other parts of the sweep still train some of the points. Without a launcher
    each point is trained when it is measured.
    """
    if not request.launcher_settings:
        return True
    train_as_sweep(points, request.launcher_settings, request.folder)
    missing = sum(not point.is_trained for point in points)
    if missing:  # they are in other parts
        print(f"{missing} of {len(points)} points are not trained yet, so nothing is measured")
    return missing == 0


def _train_and_measure_points(
    study: Study,
    request: StudyRequest,
    points: Sequence[Point],
    trials: Sequence[Trial],
    chosen: Tuned | None,
) -> Measurements:
    """trials, chosen: of the study's `tune`."""
    rows = train_and_measure(study, points)
    sentences = sentence_covariances(points, study.measured(rows), study.measurement)
    found = conditions(request.path, points, request.settings, trials)
    if chosen is not None:
        found["tuned"] = chosen.record()
    return Measurements(rows, sentences, found)


def train_and_measure(study: Study, points: Sequence[Point]) -> Rows:
    """Train what is missing of the points, and measure each."""
    measurement = MEASUREMENTS[study.measurement]
    rows: list[Row] = []
    for point in train_each(points):
        rows.extend(measurement(point))
    return rows
