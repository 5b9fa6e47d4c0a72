"""The points of a study, trained as a sweep: by any launcher, or a part of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from attnlab.errors import ExperimentError
from attnlab.experiment.override_text import quoted
from attnlab.files import atomic_file
from attnlab.project import PIPELINES
from attnlab.runs.sweep_points import key_of
from attnlab.studies.measurements import Point

SHARD = "sweep.shard"


def is_of_sweep(setting: str) -> bool:
    """Whether a setting says how a sweep runs, and nothing of its points.

    Raises ExperimentError for one that would choose the points, which the study does.
    """
    key = key_of(setting)
    is_of_sweeper = key == "sweep" or key.startswith(("sweep.", "hydra/sweeper", "hydra.sweeper."))
    if is_of_sweeper and key != SHARD:
        raise ExperimentError(
            f"{key} has no place in a study, which names its points itself; it takes launcher, "
            f"launcher.* and {SHARD}, got {setting}"
        )
    return key in ("launcher", "hydra/launcher", SHARD) or key.startswith(
        ("launcher.", "hydra.launcher.")
    )


def train_as_sweep(points: Sequence[Point], settings: Sequence[str], folder: Path) -> None:
    """Train what is missing of the points by a launcher.

    settings: of the launcher, and `sweep.shard`.
    folder: of the study, where the list of points is kept.

    Raises ExperimentError where points failed; the sweep has said why.
    """
    listed = [_without_repetition(point.overrides) for point in points]
    file = folder / "points.yaml"
    with atomic_file(file) as temporary:
        temporary.write_text(yaml.safe_dump(listed, allow_unicode=True), encoding="utf-8")
    sweep = ["sweep=listed", f"sweep.points={quoted(str(file))}", *settings]
    command = [sys.executable, str(PIPELINES / "train.py"), "-m", *sweep]
    if subprocess.run(command, check=False).returncode != 0:
        raise ExperimentError(
            "not all points of the study could be trained; what they say stands above, and the "
            "same command goes on"
        )


def _without_repetition(overrides: Sequence[str]) -> list[str]:
    """The overrides, of each setting the last one."""
    return list({key_of(override): override for override in overrides}.values())
