"""Folders that the stages read and write, and the check that protects other files in them.

An output replaces only an earlier output of its kind.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from attnlab.errors import ExperimentError, show
from attnlab.files import project_path

NotEmpty = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class Paths:
    """Folders; null leaves a stage's output in its usual place under `runs`.

    runs: experiments, prepared data and MLflow's database.
    data: prepared data; all experiments on the same data share those under `runs`.
    model: the model folder.
    ensemble: model folders that are evaluated together with the model, as one.
    training: learning curves.
    evaluation: metrics, hypotheses and attention.
    report: the page with the figures.
    """

    runs: NotEmpty
    data: NotEmpty | None
    model: NotEmpty | None
    ensemble: list[NotEmpty] | None
    training: NotEmpty | None
    evaluation: NotEmpty | None
    report: NotEmpty | None

    def __post_init__(self) -> None:
        if self.runs.startswith("~"):  # Hydra would make a folder that is called so
            raise ValueError(
                f"runs must be an absolute or relative path without ~, got {show(self.runs)}"
            )

    @property
    def runs_folder(self) -> Path:
        return runs_folder(self.runs)


def runs_folder(runs: str) -> Path:
    """`paths.runs`, resolved against the project even where DVC works in a temporary copy of it."""
    return project_path(runs).resolve()


def path_from(runs_folder: Path, path: Path) -> str:
    """A path as a record in the runs folder stores it.

    A path in that folder is relative to it, because the folder may be moved.
    """
    path = Path(os.path.abspath(path))
    if path.is_relative_to(runs_folder):
        path = path.relative_to(runs_folder)
    return str(path)


# A file or folder that every output of a kind has.
PREPARED_DATA, MODEL, LEARNING_CURVES = "stats.json", "model.json", "history.csv"
EVALUATION, REPORT, COMPARISON = "signatures.json", "pictures", "comparison.csv"


def check_replaceable(place: str, folder: Path, mark: str) -> None:
    """Raise ExperimentError if an output would replace anything but an earlier one of its kind.

    place: the setting that names the folder.
    mark: the file or folder that outputs of this kind contain.
    """
    is_other_folder = folder.is_dir() and any(folder.iterdir()) and not (folder / mark).exists()
    if folder.is_file() or is_other_folder:
        raise ExperimentError(
            f"{place}: {folder} holds something else, which would be lost; name another folder, or "
            "empty it"
        )
