"""Where a training starts: at its first step, at its last checkpoint, or at another's last one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from attnlab.data.prepared import Prepared
from attnlab.errors import ExperimentError
from attnlab.evaluation.formed_attention import FOLDER as FORMED
from attnlab.experiment.continued import problems_of_continuing
from attnlab.experiment.point import experiment_lock
from attnlab.files import atomic_folder
from attnlab.locks import lock_files, locks_in
from attnlab.model.model_folder import read_config
from attnlab.runs.run_folder import DONE, RUN_FOLDER, clear, reset_without_checkpoint
from attnlab.tasks.task import Experiment
from attnlab.training.spool import BEFORE_LAST, LAST, SPOOL_NAME


def start_of_training(
    experiment: Experiment, data: Prepared, folder: Path, parent: Path | None
) -> Path | None:
    """The checkpoint that training goes on from; None for its first step, in a cleared folder."""
    from attnlab.experiment.training import check_training  # imports Lightning

    check_training(experiment, data)
    last = None if experiment.rerun else find_resume_checkpoint(folder)
    if last is not None:
        return last
    if parent is not None:
        _check_goes_further(experiment, data, parent)
    reset_experiment_folder(experiment, folder)
    return None if parent is None else continue_training(parent, folder)


@dataclass(frozen=True)
class Checkpoint:
    """The newest undamaged checkpoint of a folder.

    path, step: None where there is none.
    damage: {path of a newer one: what is wrong with it}.
    """

    path: Path | None
    step: int | None
    damage: Mapping[Path, str]


def newest_checkpoint(point: Path) -> Checkpoint:
    """The last checkpoint of an experiment, or where that is damaged the one before."""
    # Imports Lightning, which takes seconds
    from attnlab.training.checkpoints import checkpoint_step

    damage: dict[Path, str] = {}
    for path in (point / "checkpoints" / LAST, point / "checkpoints" / BEFORE_LAST):
        if not path.is_file():
            continue
        try:
            return Checkpoint(path, checkpoint_step(path), damage)
        except ValueError as error:
            damage[path] = str(error)
    return Checkpoint(None, None, damage)


def find_resume_checkpoint(point: Path) -> Path | None:
    """The checkpoint that an unfinished training goes on from, of which it is told.

    A damaged last one is removed where the one before serves: else it would become the one before
    when the next one is saved. None where training starts from its first step.
    """
    found = newest_checkpoint(point)
    for path, problem in found.damage.items():
        print(f"warning: the checkpoint {path} is damaged: {problem}", file=sys.stderr)
    if found.path is not None:
        words = f"goes on from its checkpoint at step {found.step}"
        for path in found.damage:
            path.unlink()
    elif found.damage:
        words = "has no other checkpoint; training starts again"
    else:
        return None
    print(f"experiment {point.name} {words}", file=sys.stderr)
    return found.path


def has_checkpoint(point: Path) -> bool:
    """Whether a training in this folder has finished, or come to a checkpoint."""
    came_to = (point / DONE, point / "checkpoints" / LAST, point / "checkpoints" / BEFORE_LAST)
    return any(path.is_file() for path in came_to)


def parent_of(experiment: Experiment, data: Prepared) -> Path | None:
    """The folder of the finished experiment that this one continues; None if it continues none.

    Raises ExperimentError where there is no such experiment, or it differs in what cannot change
    between two steps (see `attnlab.experiment.continued`).
    """
    identity = experiment.training.continue_from
    if identity is None:
        return None
    parent = experiment.paths.runs_folder / "points" / identity
    if not (parent / DONE).is_file():
        raise ExperimentError(
            "training.continue_from must be the identity of a finished experiment, a folder in "
            f"{parent.parent}, got {identity}"
        )
    _check_may_continue(experiment, parent)
    experiment.task.check_same_tokens(parent / "model", data.folder)
    return parent


def _check_may_continue(experiment: Experiment, parent: Path) -> None:
    """Raise ExperimentError where the config of a training differs too much from its parent's."""
    theirs = read_config(parent / "model")
    weights_alone = f"use its weights alone, training.initial_weights={parent / 'model'}"
    different = []
    for name in ("data", "padding", "model"):
        if theirs[name] != experiment.config[name]:
            different.append(name)
    if different:
        raise ExperimentError(
            f"training.continue_from: the experiment {parent.name} differs in "
            f"{', '.join(different)}; choose the same, or {weights_alone}"
        )
    problems = []
    for problem in problems_of_continuing(experiment.config, theirs, experiment.training):
        problems.append(
            f"training.continue_from: the experiment {parent.name} cannot go on with another "
            f"setting: {problem}; or {weights_alone}"
        )
    if problems:
        raise ExperimentError(problems)


def _check_goes_further(experiment: Experiment, data: Prepared, parent: Path) -> None:
    """Raise ExperimentError where a training has made all its steps in the one that it continues.

    Also where that one has no undamaged checkpoint: it would start again without a word.
    """
    from attnlab.experiment.training import training_steps  # imports Lightning

    last = newest_checkpoint(parent)
    if last.step is None:
        damage = ", ".join(f"{path}: {problem}" for path, problem in last.damage.items())
        raise ExperimentError(
            f"training.continue_from: the experiment {parent.name} has no checkpoint to go on from"
            + (f" ({damage})" if damage else "")
        )
    steps = training_steps(experiment, data)
    if steps <= last.step:
        raise ExperimentError(
            f"training.continue_from: the experiment {parent.name} ended at step {last.step}, and "
            f"this training at step {steps}; choose a later training.max_steps or max_epochs"
        )


def continue_training(parent: Path, point: Path) -> Path | None:
    """Copy the checkpoints and curves of the experiment `parent`; returns the last checkpoint."""
    (point / RUN_FOLDER).mkdir(exist_ok=True)
    shutil.copyfile(parent / SPOOL_NAME, point / SPOOL_NAME)
    formed = parent / "training" / FORMED
    if formed.is_dir():
        with atomic_folder(point / "training" / FORMED) as temporary:
            shutil.copytree(formed, temporary, dirs_exist_ok=True)
    with atomic_folder(point / "checkpoints") as temporary:
        shutil.copytree(parent / "checkpoints", temporary, dirs_exist_ok=True)
    return find_resume_checkpoint(point)


def reset_experiment_folder(experiment: Experiment, point: Path) -> None:
    """Clear the folder, whose lock is held, for a training from its first step on.

    A run that never came to a checkpoint is used again; one that was killed later is closed. What
    MLflow lacks is uploaded. Wait for running evaluations of the old model: what they find belongs
    to that training.

    Raises ExperimentError where the tracker refuses the new run, or lacks something of the old one
    and is away.
    """
    with ExitStack() as held:
        for path in locks_in(point, "evaluations/*/lock"):
            held.enter_context(experiment_lock(path.parent))
        held_lock = lock_files("lock")
        if not has_checkpoint(point) and reset_without_checkpoint(point):
            clear(point, *held_lock, RUN_FOLDER)
            return
        experiment.tracking.close_runs(experiment.paths.runs_folder, point)
        # Killed between these, it must not be taken for finished, nor go on without its metrics.
        clear(point / "checkpoints")
        (point / DONE).unlink(missing_ok=True)
        clear(point, *held_lock)
