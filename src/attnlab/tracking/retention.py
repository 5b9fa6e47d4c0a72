"""Which validations' heat maps stay: the newest ones and the best one.

`heat_maps.json` in the point's folder holds the score of each validation and the names of those that stay.
The process that draws writes it, and the one that delivers obeys it by deleting the others from the run's
artifacts. Where the tracker deletes nothing, they stay, with a warning. Scores survive an interruption.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Literal

from attnlab.composition.atomic import atomic_file
from attnlab.composition.json_file import read_own_json

HEAT_MAPS = "attention"
SCORES = "heat_maps.json"


def step_name(step: int) -> str:
    """The folder of one validation; the zeros keep the order of the names that of the steps."""
    return f"step_{step:06d}"


def keep_heat_maps(point: Path, step: int, score: float | None, newest: int, mode: Literal["min", "max"]) -> list[str]:
    """Note a validation, and return the names of the heat maps that stay, sorted.

    score: of what the best checkpoint goes by; None or not-a-number is never the best.
    """
    path = point / SCORES
    scores: dict[str, float | None] = {}
    if path.exists():
        scores = json.loads(path.read_text(encoding="utf-8"))["scores"]
    scores[step_name(step)] = score if score is not None and math.isfinite(score) else None
    by_step = sorted(scores, key=lambda name: int(name.rpartition("_")[2]))
    kept = set(by_step[-newest:] if newest else [])
    known = {name: value for name in by_step if (value := scores[name]) is not None}
    if known:
        kept.add((max if mode == "max" else min)(known, key=known.__getitem__))  # of equals the first
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps({"kept": sorted(kept), "scores": scores}, indent=2, sort_keys=True) + "\n")
    return sorted(kept)


def kept_heat_maps(point: Path) -> list[str] | None:
    """The names that stay; None where no heat map was ever drawn. Raises ExperimentError for a damaged file."""
    path = point / SCORES
    return read_own_json(path, "remove it, and all heat maps stay")["kept"] if path.exists() else None
