"""The folder of an experiment, `runs/points/<identity>`: where it is, and who may work in it."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import Timeout

from attnlab.data.prepared import Prepared
from attnlab.experiment.sections import TRAIN_SECTIONS
from attnlab.files import read_own_record
from attnlab.locks import lock
from attnlab.model.model_folder import read_facts
from attnlab.runs.run_folder import DONE
from attnlab.runs.sweep_claims import PointHeldError
from attnlab.tasks.task import Experiment

# What makes the weights: the identity of an experiment, and DVC's, follows from this code.
TRAIN_SOURCES = (
    "attnlab.experiment.training:make_module,make_batches,make_trainer,keep_model",
    "task:module,sizes,read_vocabulary,read_data,prepared",
)


def identity_of(experiment: Experiment, data: Prepared) -> str:
    """The identity of an experiment on its prepared data."""
    read = [data.digest]
    if experiment.initial_weights is not None:
        read_facts(experiment.initial_weights)  # it is a model folder
        weights = (experiment.initial_weights / "weights.safetensors").read_bytes()
        read.append(hashlib.sha256(weights).hexdigest())
    return experiment.identity(TRAIN_SECTIONS, "\n".join(read), TRAIN_SOURCES)


def point_of(experiment: Experiment, data: Prepared) -> Path:
    """The folder of an experiment on its prepared data; its name is the experiment's identity."""
    folder = experiment.paths.runs_folder / "points" / identity_of(experiment, data)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def experiment_lock(point: Path, waits: bool = True) -> Iterator[None]:
    """Lock an experiment; wait, with a message, while another process works on it.

    After such a wait, the results of the other process are there.

    point: the folder of the experiment, or that of its evaluation with another search; these two do
        not wait for each other.

    Raises PointHeldError while another process works on it, unless this one waits.
    """
    of_point = lock(point / "lock")
    try:
        held = of_point.acquire(timeout=0)
    except Timeout:
        if not waits:
            raise PointHeldError from None
        print(f"another process is at {point}; waiting for it", file=sys.stderr)
        held = of_point.acquire()
    with held:
        yield


def read_done(point: Path) -> dict[str, Any]:
    """What a finished training found; raises ExperimentError where its file is damaged."""
    return read_own_record(point / DONE, dict[str, Any], "train it again with rerun=true")
