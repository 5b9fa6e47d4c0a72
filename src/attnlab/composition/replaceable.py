"""Folders that are written anew take the place only of what was written there before, never of something else."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from attnlab.composition.error import ExperimentError
from attnlab.composition.writable import check_writable


@dataclass(frozen=True)
class Output:
    """A folder as one of the stages writes it.

    what: its kind, as in "a model". known_by: a file that every one has. files: patterns of all that it may have.
    """

    what: str
    known_by: str
    files: tuple[str, ...]


PREPARED_DATA = Output("prepared data", "data.json", ("*.json", "*.arrow", "lengths.png"))
MODEL = Output("a model", "model.json", ("*.json", "weights.safetensors"))
LEARNING_CURVES = Output("learning curves", "history.csv", ("history.csv",))
EVALUATION = Output("an evaluation", "metrics.json", ("*.json", "*.jsonl", "*.npz", "*.png", "*.html"))
REPORT = Output("a report", "index.html", ("index.html", "pictures"))
COMPARISON = Output("a comparison", "systems.csv", ("*.csv", "*.png", "comparison.md", "index.html"))


def check_replaceable(place: str, folder: Path, output: Output) -> None:
    """Raise ExperimentError where writing to a folder would remove what is no earlier output of the same kind.

    place: the setting that names the folder.
    """
    if folder.exists() and not folder.is_dir():
        raise ExperimentError(f"{place}: {folder} is a file; name a folder")
    check_writable(place, folder.parent if folder.exists() else folder)
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    others = [name for name in names if not any(fnmatch(name, pattern) for pattern in output.files)]
    if names and (others or not (folder / output.known_by).is_file()):
        raise ExperimentError(
            f"{place}: {folder} holds something else than {output.what} ({(others or names)[0]}), which would be lost; "
            f"name another folder, or empty it"
        )
