"""Places that cannot be written to are told before anything runs for hours."""

from __future__ import annotations

import tempfile
from pathlib import Path

from attnlab.composition.error import ExperimentError


def check_writable(place: str, folder: Path) -> None:
    """Raise ExperimentError where a folder, and what goes into it, could not be made; nothing is left of the try.

    place: the setting that names the folder.
    """
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    if not nearest.is_dir():
        raise ExperimentError(f"{place}: {folder} cannot be made, for {nearest} is a file; name another place")
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise ExperimentError(
            f"{place}: nothing can be written to {nearest} ({error.strerror}); name another place"
        ) from None
