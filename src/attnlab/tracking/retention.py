"""Which validations' heat maps stay: the newest ones and the best one.

`heat_maps.json` in the run folder holds the score of each validation and the names of those that stay. The process that
draws writes it; the one that uploads deletes the others from the run's artifacts. Where the tracker cannot delete, they
stay, with a warning. Scores survive an interruption.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import FiniteFloat, StringConstraints

from attnlab.errors import ExperimentError
from attnlab.files import atomic_file, read_own_record

HEAT_MAPS = "attention"
SCORES = "heat_maps.json"

StepName = Annotated[str, StringConstraints(pattern=r"^step_[0-9]{1,18}$")]


@dataclass(frozen=True)
class HeatMapsOfRun:
    """What stands in `heat_maps.json`."""

    kept: list[StepName]
    scores: dict[StepName, FiniteFloat | None]


def step_name(step: int) -> str:
    """The folder of one validation; the zeros keep the order of the names that of the steps."""
    return f"step_{step:06d}"


def keep_heat_maps(folder: Path, step: int, score: float | None, newest: int, mode: Literal["min", "max"]) -> list[str]:
    """Note a validation, and return the names of the heat maps that stay, sorted.

    score: of what the best checkpoint goes by; None or not-a-number is never the best.
    """
    scores = _scores_so_far(folder)
    scores[step_name(step)] = score if score is not None and math.isfinite(score) else None
    by_step = sorted(scores, key=lambda name: int(name.rpartition("_")[2]))
    kept = set(by_step[-newest:] if newest else [])
    known = {name: value for name in by_step if (value := scores[name]) is not None}
    if known:
        kept.add((max if mode == "max" else min)(known, key=known.__getitem__))  # of equals the first
    with atomic_file(folder / SCORES) as temporary:
        temporary.write_text(json.dumps({"kept": sorted(kept), "scores": scores}, indent=2, sort_keys=True) + "\n")
    return sorted(kept)


def retired_heat_maps(folder: Path) -> list[str]:
    """The names of those that do not stay. Raises ExperimentError for a damaged file."""
    found = _read(folder, "remove it, and all heat maps stay")
    return [] if found is None else sorted(set(found.scores) - set(found.kept))


def _scores_so_far(folder: Path) -> dict[str, float | None]:
    """By name; none where the file is damaged: no training ends because it is not known which pictures go."""
    try:
        found = _read(folder, "the heat maps that were drawn so far stay, all of them")
    except ExperimentError as damage:
        print(f"warning: {damage}", file=sys.stderr)
        return {}
    return {} if found is None else found.scores


def _read(folder: Path, remedy: str) -> HeatMapsOfRun | None:
    """None where no heat map was ever drawn."""
    path = folder / SCORES
    return read_own_record(path, HeatMapsOfRun, remedy) if path.exists() else None
