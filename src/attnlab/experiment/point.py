"""The folder of one experiment, `runs/points/<identity>`: whose turn it is, where training goes on, what is kept."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from attnlab.config.paths import LEARNING_CURVES, MODEL, check_replaceable
from attnlab.experiment.experiment import Experiment, here
from attnlab.files import atomic_folder, read_own_record
from attnlab.tracking.run_folder import DONE, RUN_FOLDER, forget_runs, reset_without_checkpoint
from attnlab.training.checkpoints import BEFORE_LAST, LAST, checkpoint_step


def publish(point: Path, experiment: Experiment) -> None:
    """Copy the finished outputs to where the config wants them."""
    for name, wanted in (("model", experiment.paths.model), ("training", experiment.paths.training)):
        if wanted is not None:
            with atomic_folder(here(wanted)) as temporary:
                shutil.copytree(point / name, temporary, dirs_exist_ok=True)


def check_wanted_places(experiment: Experiment) -> None:
    """Raise ExperimentError where `publish` would remove something else, before anything is trained."""
    if experiment.paths.model is not None:
        check_replaceable("paths.model", here(experiment.paths.model), MODEL)
    if experiment.paths.training is not None:
        check_replaceable("paths.training", here(experiment.paths.training), LEARNING_CURVES)


@contextmanager
def only_one_at_a_time(point: Path) -> Iterator[None]:
    """Wait, and say so, while another process is at the same experiment; afterwards what it found is there.

    point: its folder, or that of an evaluation with another search in it; one does not wait for the other.
    """
    lock = FileLock(point / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"another process is at {point}; waiting for it", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def checkpoint_to_go_on_from(point: Path) -> Path | None:
    """The last checkpoint of an unfinished training that is whole; None where training starts from its first step."""
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
        print(f"experiment {point.name} goes on from its checkpoint at step {step}", file=sys.stderr)
        return path
    if damaged:
        print(f"experiment {point.name} has no other checkpoint; training starts again", file=sys.stderr)
    return None


def has_checkpoint(point: Path) -> bool:
    """Whether its training came to one, whole or not."""
    return any((point / "checkpoints" / name).is_file() for name in (LAST, BEFORE_LAST))


def changed_since(point: Path, moment: float) -> bool:
    """Whether its training, finished or not, was saved after this moment, in seconds since 1970."""
    saved = (point / "done.json", point / "checkpoints" / "last.ckpt")
    return any(path.is_file() and path.stat().st_mtime >= moment for path in saved)


def clear(point: Path, *kept: str) -> None:
    """Remove what an earlier or repeated training left, but for the lock that is held and what is named."""
    for path in point.iterdir() if point.is_dir() else ():
        if path.name not in ("lock", *kept):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def begin_anew(experiment: Experiment, point: Path) -> None:
    """Clear the folder, whose lock is held, for a training from its first step on.

    A run that never came to a checkpoint is used again; one that was killed later is closed. What MLflow lacks is
    uploaded. Whoever evaluates with another search what was trained before is waited for: what it finds belongs to that
    training.

    Raises:
        ExperimentError: the tracker refuses the new run, or lacks something of the old one and cannot be reached.
    """
    with ExitStack() as held:
        for lock in sorted(point.glob("evaluations/*/lock")):
            held.enter_context(only_one_at_a_time(lock.parent))
        _begin_anew(experiment, point)


def _begin_anew(experiment: Experiment, point: Path) -> None:
    is_new = not (point / DONE).is_file() and not has_checkpoint(point)
    if is_new and reset_without_checkpoint(point):
        return clear(point, RUN_FOLDER)
    experiment.tracking.conclude(experiment.paths.runs_folder, point)
    # Killed between these, it must not be taken for finished, nor go on without its metrics.
    clear(point / "checkpoints")
    (point / DONE).unlink(missing_ok=True)
    forget_runs(point)
    return clear(point)


def read_done(point: Path) -> dict[str, Any]:
    """What a finished training found; raises ExperimentError where its file is damaged."""
    return read_own_record(point / "done.json", dict[str, Any], "train it again with rerun=true")
