"""Prepared data of an experiment: tokenizers, encoded rows and statistics, made where missing."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from attnlab.config.paths import PREPARED_DATA, check_replaceable
from attnlab.data.hub import raw_state
from attnlab.data.prepare import prepare as prepare_corpus
from attnlab.data.prepared import Prepared
from attnlab.data.statistics import remarks
from attnlab.data.tokenizer import library_threads
from attnlab.errors import ExperimentError
from attnlab.experiment.sections import PREPARE_SECTIONS
from attnlab.files import atomic_folder, resolve_path
from attnlab.locks import lock
from attnlab.progress import progress_bars
from attnlab.tasks.task import Experiment

# What makes the prepared data: their identity, and DVC's, follows from this code.
PREPARE_SOURCES = (f"{__name__}:write_prepared", "task:rows")


def prepare(experiment: Experiment) -> Prepared:
    """The prepared data of an experiment, made where they are missing.

    Raises ExperimentError where they cannot be made, or the model could not read some of them.
    """
    data = experiment.task.open_data(prepare_where_missing(experiment))
    experiment.task.check_data(experiment, data)
    return data


def prepare_where_missing(experiment: Experiment) -> Path:
    """The folder of the prepared data; two processes that miss the same data prepare them once.

    Raises ExperimentError where `paths.data` names a folder without them and `chain` is false, as
    under DVC.
    """
    folder = prepared_folder(experiment)
    if (folder / "data.json").is_file():
        return folder
    if not experiment.chain and experiment.paths.data is not None:
        raise ExperimentError(
            f"paths.data: {folder} holds no prepared data; "
            "run the prepare stage, or choose chain=true"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock(folder.with_name(f".{folder.name}.lock")):
        if not (folder / "data.json").is_file():
            write_prepared(experiment, folder)
    return folder


def prepared_folder(experiment: Experiment) -> Path:
    """Where the prepared data lie: as configured, or under runs/, shared by all that equal them."""
    if experiment.paths.data is not None:
        return resolve_path(experiment.paths.data)
    read = [raw_state(experiment.values["data"].get("path"))]
    for trainer in experiment.data.tokenizer_trainers:
        read += [hashlib.sha256(file.read_bytes()).hexdigest() for file in trainer.files]
    identity = experiment.identity(PREPARE_SECTIONS, "\n".join(read), PREPARE_SOURCES)
    return experiment.paths.runs_folder / "data" / identity


def write_prepared(experiment: Experiment, folder: Path) -> None:
    """Write the prepared data to `folder`, whole or not at all, also where it has some already.

    Tokenisers use all processors, on which the bytes do not depend, whatever `hardware.threads`
    says of the training.
    """
    check_replaceable("paths.data", folder, PREPARED_DATA)
    with (
        atomic_folder(folder) as temporary,
        progress_bars() as progress,
        library_threads(),
    ):
        prepare_corpus(experiment.data, experiment.task.rows, temporary, progress)
    for sentence in remarks(experiment.task.open_data(folder).stats):
        print(sentence, file=sys.stderr)
