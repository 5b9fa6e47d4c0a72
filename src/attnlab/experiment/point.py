"""The folder of one experiment, `runs/points/<identity>`: whose turn it is, where training goes on,
what is kept.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from attnlab.config.paths import LEARNING_CURVES, MODEL, check_replaceable
from attnlab.errors import ExperimentError
from attnlab.experiment.experiment import TRAIN_SECTIONS, TRAIN_SOURCES, Experiment, here
from attnlab.files import atomic_folder, read_own_record
from attnlab.model.model_folder import read_config, read_facts
from attnlab.runs.run_folder import DONE, RUN_FOLDER, clear, reset_without_checkpoint
from attnlab.training.spool import BEFORE_LAST, LAST, SPOOL_NAME


def identity_of(experiment: Experiment, data: Any) -> str:
    """The identity of an experiment on its prepared data."""
    read = [data.digest]
    if experiment.initial_weights is not None:
        read_facts(experiment.initial_weights)  # it is a model folder
        weights = (experiment.initial_weights / "weights.safetensors").read_bytes()
        read.append(hashlib.sha256(weights).hexdigest())
    return experiment.identity(TRAIN_SECTIONS, "\n".join(read), TRAIN_SOURCES)


def point_of(experiment: Experiment, data: Any) -> Path:
    """The folder of an experiment on its prepared data; its name is the experiment's identity."""
    folder = experiment.paths.runs_folder / "points" / identity_of(experiment, data)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def publish(point: Path, experiment: Experiment) -> None:
    """Copy the finished outputs to where the config wants them."""
    for name, wanted, _ in _wanted_outputs(experiment):
        with atomic_folder(wanted) as temporary:
            shutil.copytree(point / name, temporary, dirs_exist_ok=True)


def check_wanted_places(experiment: Experiment) -> None:
    """Raise ExperimentError where `publish` would remove something else, before anything is
    trained.
    """
    for name, wanted, mark in _wanted_outputs(experiment):
        check_replaceable(f"paths.{name}", wanted, mark)


def _wanted_outputs(experiment: Experiment) -> Iterator[tuple[str, Path, str]]:
    for name, mark in (("model", MODEL), ("training", LEARNING_CURVES)):
        if (wanted := getattr(experiment.paths, name)) is not None:
            yield name, here(wanted), mark


@contextmanager
def only_one_at_a_time(point: Path) -> Iterator[None]:
    """Wait, and say so, while another process is at the same experiment; afterwards what it found
    is there.

    point: its folder, or that of an evaluation with another search in it; one does not wait for the
        other.
    """
    lock = FileLock(point / "lock")
    try:
        held = lock.acquire(timeout=0)
    except Timeout:
        print(f"another process is at {point}; waiting for it", file=sys.stderr)
        held = lock.acquire()
    with held:
        yield


def checkpoint_to_go_on_from(point: Path) -> Path | None:
    """The last checkpoint of an unfinished training that is whole; None where training starts from
    its first step.
    """
    # Imports Lightning, which takes seconds
    from attnlab.training.checkpoints import checkpoint_step

    damaged = False
    for path in (point / "checkpoints" / LAST, point / "checkpoints" / BEFORE_LAST):
        if not path.is_file():
            continue
        try:
            step = checkpoint_step(path)
        except ValueError as damage:
            print(f"warning: the checkpoint {path} is damaged: {damage}", file=sys.stderr)
            damaged = True
            continue
        print(
            f"experiment {point.name} goes on from its checkpoint at step {step}", file=sys.stderr
        )
        if damaged:  # or it would become the previous one when the next one is saved
            path.with_name(LAST).unlink(missing_ok=True)
        return path
    if damaged:
        print(
            f"experiment {point.name} has no other checkpoint; training starts again",
            file=sys.stderr,
        )
    return None


def parent_of(experiment: Experiment, data: Any) -> Path | None:
    """The folder of the finished experiment that this one continues; None where it starts by
    itself.

    Raises ExperimentError where there is no such experiment, or it differs in more than how long it
    trains.
    """
    if (identity := experiment.training.continue_from) is None:
        return None
    parent = experiment.paths.runs_folder / "points" / identity
    if not (parent / DONE).is_file():
        raise ExperimentError(
            "training.continue_from must be the identity of a finished experiment, a folder in "
            f"{parent.parent}, got {identity}"
        )
    theirs = read_config(parent / "model")
    other = [
        name for name in ("data", "padding", "model") if theirs[name] != experiment.config[name]
    ]
    if other:
        raise ExperimentError(
            f"training.continue_from: the experiment {identity} differs in {', '.join(other)}; "
            "choose the same, or use its weights alone, "
            f"training.initial_weights={parent / 'model'}"
        )
    experiment.task.check_same_tokens(parent / "model", data.folder)

    return parent


def continue_training(parent: Path, point: Path) -> Path | None:
    """Copy the checkpoints and learning curves of the experiment `parent`; returns the checkpoint
    to go on from.
    """
    (point / RUN_FOLDER).mkdir(exist_ok=True)
    shutil.copyfile(parent / SPOOL_NAME, point / SPOOL_NAME)
    with atomic_folder(point / "checkpoints") as temporary:
        shutil.copytree(parent / "checkpoints", temporary, dirs_exist_ok=True)
    return checkpoint_to_go_on_from(point)


def begin_anew(experiment: Experiment, point: Path) -> None:
    """Clear the folder, whose lock is held, for a training from its first step on.

    A run that never came to a checkpoint is used again; one that was killed later is closed. What
    MLflow lacks is uploaded. Whoever evaluates with another search what was trained before is
    waited for: what it finds belongs to that training.

    Raises ExperimentError where the tracker refuses the new run, or lacks something of the old one
    and is away.
    """
    with ExitStack() as held:
        for lock in sorted(point.glob("evaluations/*/lock")):
            held.enter_context(only_one_at_a_time(lock.parent))
        came_to = (point / DONE, point / "checkpoints" / LAST, point / "checkpoints" / BEFORE_LAST)
        if not any(path.is_file() for path in came_to) and reset_without_checkpoint(point):
            clear(point, "lock", RUN_FOLDER)
            return
        experiment.tracking.conclude(experiment.paths.runs_folder, point)
        # Killed between these, it must not be taken for finished, nor go on without its metrics.
        clear(point / "checkpoints")
        (point / DONE).unlink(missing_ok=True)
        clear(point, "lock")


def read_done(point: Path) -> dict[str, Any]:
    """What a finished training found; raises ExperimentError where its file is damaged."""
    return read_own_record(point / DONE, dict[str, Any], "train it again with rerun=true")
