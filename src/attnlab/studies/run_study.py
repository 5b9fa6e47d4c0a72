"""Running a study: its models trained and measured, at each look until it is decided."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.studies.measurements import Point
from attnlab.studies.study import Study
from attnlab.studies.study_files import Measurements, measurements_of
from attnlab.studies.study_result import look_of
from attnlab.studies.study_sweep import train_as_sweep
from attnlab.studies.tuning import tuned


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

    A study that tunes a setting chooses its values first. A study with looks trains the seeds of
    the next look only where the last one did not end it.

    Raises ExperimentError with every problem, before anything is trained.
    """
    study.points(run.seeds, run.settings)  # whose mistakes are told before a trial is trained
    trials = study.trials(run.settings)
    chosen = None
    if study.tuning is not None:
        of_trials = [point for trial in trials for point in trial.points]
        if not _train_by_sweep(run, of_trials):
            return None
        chosen = tuned(study.tuning, trials)
    points = study.points(run.seeds, run.settings, chosen)
    measurements = None
    for count in study.counts_of_seeds(run.seeds):
        of_look = [point for point in points if point.seed < study.first_seed + count]
        if not _train_by_sweep(run, of_look):
            return None
        measurements = measurements_of(study, run.path, of_look, run.settings, trials, chosen)
        if not study.looks:
            break
        look = look_of(study, measurements.rows, measurements.sentences)
        print(f"{look.seeds} seeds: {look.why}", file=sys.stderr)
        if look.ends:
            break
    return measurements


def _train_by_sweep(run: Run, points: Sequence[Point]) -> bool:
    """Train the points by the user's launcher, and say whether the study goes on.

    It does not where other parts of the sweep still train some of the points. Without a launcher
    nothing is trained here: each point is, when it is measured.
    """
    if not run.of_sweep:
        return True
    train_as_sweep(points, run.of_sweep, run.folder)
    missing = sum(not point.is_trained for point in points)
    if missing:  # they are in other parts
        print(f"{missing} of {len(points)} points are not trained yet, so nothing is measured")
    return missing == 0
