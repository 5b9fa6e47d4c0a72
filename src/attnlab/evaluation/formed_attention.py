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


def has_formed(training: Path) -> bool:
    """Whether maps of validations were kept."""
    return bool(_paths_of(training))


def read_validations(training: Path, count: int) -> list[tuple[int, list[AttentionMap]]]:
    """(step, the maps of its sentences) of up to `count` validations.

    They are evenly spaced, the first and the last among them. Empty where none were kept.

    Raises ExperimentError for a file that holds no maps.
    """
    paths = _paths_of(training)
    if not paths:
        return []
    steps = np.array(sorted(paths), dtype=np.int64)
    return [(step, load_maps(paths[step])) for step in evenly_spaced(steps, count)]


def read_formed(training: Path, count: int) -> list[tuple[int, AttentionMap]]:
    """As `read_validations`, of the first sentence alone."""
    return [(step, maps[0]) for step, maps in read_validations(training, count) if maps]


def _paths_of(training: Path) -> dict[int, Path]:
    """The file of each step."""
    paths = {}
    for path in (training / FOLDER).glob(f"{_PREFIX}*.npz"):
        number = path.stem.removeprefix(_PREFIX)
        if number.isdecimal():
            paths[int(number)] = path
    return paths
