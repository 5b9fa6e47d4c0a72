"""Folders that are written anew take the place only of what was written there before, never of something else."""

from __future__ import annotations

from pathlib import Path

from attnlab.composition.error import ExperimentError
from attnlab.composition.writable import check_writable


def check_replaceable(place: str, folder: Path, what: str, known_by: str) -> None:
    """Raise ExperimentError where writing to a folder would remove what is no earlier output of the same kind.

    place: the setting that names the folder. what: the kind of output, as "a model".
    known_by: a file that every output of the kind has.
    """
    if folder.exists() and not folder.is_dir():
        raise ExperimentError(f"{place}: {folder} is a file; name a folder")
    check_writable(place, folder.parent if folder.exists() else folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / known_by).is_file():
        raise ExperimentError(
            f"{place}: {folder} holds something else than {what}, which would be lost; name another folder, or empty it"
        )
