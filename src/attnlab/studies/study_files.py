"""What a study measured, under which conditions, and the files in which both are kept."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import torch

from attnlab.config.params import git_tags
from attnlab.errors import ExperimentError
from attnlab.files import atomic_file
from attnlab.model.fast.products import is_intel
from attnlab.studies.measured_rows import Rows, SentenceCovariances
from attnlab.studies.measurements import Point
from attnlab.studies.registration import digest_of_training, registration_of
from attnlab.studies.sentence_scatter import read_covariances, write_covariances
from attnlab.studies.study import Study
from attnlab.studies.tuning import Trial

ROWS, SENTENCES, RESULT = "rows.csv", "sentences.csv", "result.json"


@dataclass(frozen=True, eq=False)
class Measurements:
    """What a study measured, and under which conditions.

    sentences: how the means scatter by the choice of the test sentences.
    conditions: what `conditions` found.
    """

    rows: Rows
    sentences: SentenceCovariances
    conditions: Mapping[str, Any]


_CONDITIONS = (
    "run_seeds", "cpu_minutes", "run_settings", "machine", "revision", "began", "registered",
    "tuned", "trained",
)  # fmt: skip


def conditions(
    path: Path, points: Sequence[Point], settings: Sequence[str], trials: Sequence[Trial] = ()
) -> dict[str, Any]:
    """How a study was run, and when its question was written down.

    settings: the user's; where the data lie is left out.
    trials: what was trained to choose settings.
    """
    of_trials = [point for trial in trials for point in trial.points]
    everything = [*of_trials, *points]
    seeds = {point.seed for point in points}
    run_settings = [re.sub("^data.path=.*", "data.path=<folder>", text) for text in settings]
    threads = points[0].experiment.hardware.threads
    precisions = sorted({str(point.experiment.hardware.precision) for point in points})
    began = min(point.began for point in everything)
    registration = registration_of(path)
    return {
        "run_seeds": len(seeds),
        "cpu_minutes": sum(point.cpu_minutes for point in everything),
        "run_settings": run_settings,
        "machine": described_machine(threads, " and ".join(precisions)),
        "revision": git_tags(path.resolve().parent)["git_revision"],
        "began": began.isoformat(timespec="seconds"),
        "trained": digest_of_training(path.read_text(encoding="utf-8")),
        "registered": {
            "digest": registration.digest,
            "commit": registration.commit,
            "before": registration.is_before(began),
        },
    }


def described_machine(threads: int, precision: str) -> str:
    """What the bits of a result depend on."""
    maker = "Intel" if is_intel() else "not Intel"  # by which products are made
    return (
        f"{torch.backends.cpu.get_cpu_capability()}, {maker}, {threads} thread(s), "
        f"precision {precision}, "
        f"Python {platform.python_version()}, torch {torch.__version__}"
    )


def write_measurements(measurements: Measurements, folder: Path) -> None:
    """Write the rows, and how they scatter by the sentences, to a study's folder."""
    with atomic_file(folder / ROWS) as temporary:
        pd.DataFrame(measurements.rows).to_csv(temporary, index=False)
    write_covariances(measurements.sentences, folder / SENTENCES)


def read_measurements(folder: Path) -> Measurements:
    """What was measured before; raises ExperimentError where nothing was."""
    if not (folder / RESULT).is_file() or not (folder / ROWS).is_file():
        raise ExperimentError(f"--judge needs the rows of a study that was run; {folder} has none")
    found = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    table = pd.read_csv(folder / ROWS)
    rows = [
        {name: value for name, value in row.items() if name == "at" or not pd.isna(value)}
        for row in table.to_dict("records")
    ]
    kept = {name: found[name] for name in _CONDITIONS if name in found}
    return Measurements(rows, read_covariances(folder / SENTENCES), kept)


def check_rows(study: Study, path: Path, measurements: Measurements) -> None:
    """Raise ExperimentError where rows were not measured of what the study trains now.

    path: of the study's file.
    """
    trained_now = digest_of_training(path.read_text(encoding="utf-8"))
    problems = []
    if measurements.conditions.get("trained", trained_now) != trained_now:
        problems.append("they were trained with other systems, settings or seeds")
    first = min((int(row["seed"]) for row in measurements.rows), default=None)
    if first is None:
        problems.append("there are none")
    elif first != study.first_seed:
        problems.append(f"their seeds begin at {first}, those of the study at {study.first_seed}")
    was_tuned, is_tuned = "tuned" in measurements.conditions, study.tuning is not None
    if was_tuned and not is_tuned:
        problems.append("a setting was tuned for them, and the study tunes none")
    if is_tuned and not was_tuned:
        problems.append("no setting was tuned for them, and the study tunes one")
    if problems:
        raise ExperimentError(
            f"the rows of {path.stem} do not answer what it asks now: {'; '.join(problems)}; run "
            "it anew"
        )
