"""Attention of the same sentences at each validation of a training.

`attention/step_000500.npz` beside the learning curves has the maps of one validation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attnlab.evaluation.attention_map import AttentionMap, evenly_spaced, load_maps

FOLDER = "attention"
_PREFIX = "step_"


def formed_maps(training: Path, step: str) -> Path:
    """Where the maps of a validation lie; the folder is there afterwards.

    training: the folder of the learning curves.
    step: `step_000500`.
    """
    folder = training / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{step}.npz"


def read_formed(training: Path, count: int) -> list[tuple[int, AttentionMap]]:
    """(step, the map of the first sentence) of up to `count` validations.

    They are evenly spaced, the first and the last among them. Empty where none were kept.
    """
    paths = {}
    for path in (training / FOLDER).glob(f"{_PREFIX}*.npz"):
        number = path.stem.removeprefix(_PREFIX)
        if number.isdecimal():
            paths[int(number)] = path
    steps = np.array(sorted(paths), dtype=np.int64)
    if not len(steps):
        return []

    found = []
    for step in evenly_spaced(steps, count):
        maps = load_maps(paths[step])
        if maps:
            found.append((step, maps[0]))
    return found
