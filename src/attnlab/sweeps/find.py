"""The sweep that a person means."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attnlab.errors import ExperimentError
from attnlab.sweeps.record import SweepFolder

LAST = "last"


def find_sweep(runs_folder: Path, wanted: str) -> SweepFolder:
    """The sweep of this identity, or the one that was started last; raises ExperimentError where it is not clear."""
    folders = [SweepFolder(path.parent) for path in (runs_folder / "sweeps").glob("*/sweep.json")]
    found = {folder.path.name: folder for folder in folders}
    if not found:
        raise ExperimentError(
            f"sweep: there is no sweep in {runs_folder / 'sweeps'}; python pipelines/train.py -m ... starts one"
        )
    if wanted == LAST:
        return max(folders, key=lambda folder: (folder.read().started, folder.path.name))
    matching = sorted(identity for identity in found if identity.startswith(wanted))
    if not matching:
        raise ExperimentError(f"sweep must be {LAST} or (the beginning of) one of {_list(found)}; got {wanted!r}")
    if len(matching) > 1:
        raise ExperimentError(f"sweep: {wanted!r} begins {_list(matching)}; give more of the one that is meant")
    return found[matching[0]]


def _list(identities: Iterable[str]) -> str:
    return ", ".join(sorted(identities))
