"""The stage `pipelines/prepare.py`: raw text -> tokenizers, encoded rows, statistics."""

from __future__ import annotations

import sys
from pathlib import Path

from filelock import FileLock

from attnlab.config.paths import PREPARED_DATA, check_replaceable
from attnlab.data.hub import raw_state
from attnlab.data.prepare import prepare as prepare_corpus
from attnlab.data.statistics import remarks
from attnlab.errors import ExperimentError
from attnlab.experiment.experiment import PREPARE_SECTIONS, PREPARE_SOURCES, Experiment, here
from attnlab.experiment.launch import say
from attnlab.files import atomic_folder
from attnlab.progress import progress_bars


def prepare(experiment: Experiment, folder: Path) -> None:
    """Write the prepared data to `folder`, whole or not at all."""
    check_replaceable("paths.data", folder, PREPARED_DATA)
    with atomic_folder(folder) as temporary, progress_bars() as progress:
        prepare_corpus(experiment.data, temporary, progress)
    for sentence in remarks(experiment.task.open_data(folder).stats):
        print(sentence, file=sys.stderr)


def prepared_folder(experiment: Experiment) -> Path:
    """Where the prepared data of an experiment lie: as configured, or under runs/, shared by all
    that equal them.
    """
    if experiment.paths.data is not None:
        return here(experiment.paths.data)
    raw = raw_state(experiment.values["data"].get("path"))
    identity = experiment.identity(PREPARE_SECTIONS, raw, PREPARE_SOURCES)
    return experiment.paths.runs_folder / "data" / identity


def prepare_where_missing(experiment: Experiment) -> Path:
    """The prepared data of an experiment; two processes that miss the same data at once prepare it
    once.

    Raises ExperimentError where `paths.data` names a folder without them and `chain` is false, as
    under DVC.
    """
    folder = prepared_folder(experiment)
    if not (folder / "data.json").is_file():
        if not experiment.chain and experiment.paths.data is not None:
            raise ExperimentError(
                f"paths.data: {folder} holds no prepared data; run the prepare stage, or choose "
                "chain=true"
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if not (folder / "data.json").is_file():
                prepare(experiment, folder)
    return folder


def main(experiment: Experiment) -> None:
    folder = prepared_folder(experiment)
    prepare(experiment, folder)
    sizes = experiment.task.open_data(folder).sizes
    say(
        f"prepared {', '.join(f'{size} {split}' for split, size in sizes.items())} rows in {folder}"
    )
