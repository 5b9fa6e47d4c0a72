"""The run of an experiment, while one process works on it.

The folder is `runs/points/<identity>`; `open_run` gives it to one process at a time.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from attnlab.config.identity import config_digest
from attnlab.config.paths import LEARNING_CURVES, MODEL, check_replaceable
from attnlab.data.prepared import Prepared
from attnlab.experiment.point import experiment_lock, point_of, read_done
from attnlab.experiment.resuming import (
    has_checkpoint,
    newest_checkpoint,
    parent_of,
    start_of_training,
)
from attnlab.experiment.run_record import record_of, start_lines
from attnlab.files import atomic_folder, resolve_path
from attnlab.model.model_folder import read_config, read_facts
from attnlab.runs.run import InactiveRun, Run
from attnlab.runs.run_folder import DONE
from attnlab.runs.sweep_job import current_job
from attnlab.tasks.task import Experiment
from attnlab.terminal import echo, log

# One number, or one for each objective; None in processes that only train.
Objective = float | tuple[float, ...] | None


@dataclass
class ExperimentRun:
    """An experiment in its folder, while one process works on it.

    data: the prepared data.
    is_first_process: of a distributed training; the others train, and keep and publish nothing.
    is_finished: it was trained before, and is not trained again.
    last_checkpoint: that training goes on from; None where it starts from its first step.
    tracked: its run in MLflow, where there is one.
    """

    experiment: Experiment
    data: Prepared
    folder: Path
    is_first_process: bool = True
    is_finished: bool = False
    last_checkpoint: Path | None = None
    tracked: Run = field(default_factory=InactiveRun)
    _closes_tracked: ExitStack = field(default_factory=ExitStack)
    _found: dict[str, Any] = field(default_factory=dict)

    def train(self) -> None:
        """Train what is not finished, in the steps that `pipelines/train.py` spells out."""
        if self.is_finished:
            return
        from attnlab.experiment.training import make_batches, make_module, make_trainer

        module = make_module(self.experiment, self.data)
        batches = make_batches(self.experiment, self.data)
        trainer = make_trainer(
            self.experiment, self.data, batches, self.folder, after_checkpoint=self.upload
        )
        trainer.fit(module, batches, ckpt_path=self.last_checkpoint)
        self.keep(trainer)

    def keep(self, trainer: Any) -> None:
        """Write what is left of a training: the best weights as a model folder, and its curves."""
        if not self.is_first_process or not trainer.is_global_zero:
            return
        from attnlab.experiment.training import keep_model  # imports Lightning

        keep_model(self.experiment, self.data, trainer, self.folder)
        self.upload()

    def upload(self, safe_offset: int | None = None) -> None:
        """Upload what is new to MLflow.

        safe_offset: how far the spool of metrics may be uploaded; None for all of it.
        """
        self.tracked.upload_new(safe_offset)

    def publish(self) -> None:
        """End the run in MLflow, and copy the outputs to where the config wants them.

        Also those of a run that was finished before: DVC has deleted its copies.
        """
        if not self.is_first_process:
            return
        self._found = read_done(self.folder)
        # Training is over, and a copy that fails must not make it a failed run.
        self._closes_tracked.close()
        for name, wanted, _ in _wanted_outputs(self.experiment):
            with atomic_folder(wanted) as temporary:
                shutil.copytree(self.folder / name, temporary, dirs_exist_ok=True)
        step = self._found.get("step")
        log.info("trained: the model is of step %s, in %s", step, self.folder / "model")

    @property
    def began(self) -> float | None:
        """When the command began, in seconds since 1970; None if it did not train the whole."""
        if self.is_finished or self.last_checkpoint is not None:
            return None
        job = current_job()
        return psutil.Process().create_time() if job is None else job.record.started

    @property
    def objective(self) -> Objective:
        """What the training found of `sweep.objectives`, as Hydra's sweepers take it.

        Known since `publish`: by now another command may train the same experiment again.
        """
        if not self.is_first_process:
            return None
        values = [self._found[name] for name in self.experiment.sweep.objectives]
        return values[0] if len(values) == 1 else tuple(values)


def set_up(experiment: Experiment) -> None:
    """Prepare this process for an experiment: torch's settings, places to write, a moved folder.

    Raises ExperimentError where the machine lacks the device, or an output would replace something
    else, before anything is computed.
    """
    experiment.use_hardware()
    if current_job() is not None:
        experiment.hardware.take_turn()
    for name, wanted, mark in _wanted_outputs(experiment):
        check_replaceable(f"paths.{name}", wanted, mark)
    if is_first_process():
        experiment.tracking.follow_moved_folder(experiment.paths.runs_folder)


@contextmanager
def open_run(experiment: Experiment, data: Prepared) -> Iterator[ExperimentRun]:
    """The run of an experiment on its prepared data, for as long as the block works on it.

    The first process holds the lock of the folder: a second command waits, and then finds the run
    finished. It opens the run in MLflow, too; an error in the block ends that run as failed.

    Raises ExperimentError where the training cannot start, and PointHeldError where another process
    works on it and this job has no reason to wait.
    """
    parent, folder = parent_of(experiment, data), point_of(experiment, data)
    if not is_first_process():
        yield _of_another_process(experiment, data, folder, parent)
        return

    job = current_job()
    for line in start_lines(experiment, data, folder):
        if job is None:
            echo(line)
        else:  # the terminal is that of the sweep
            log.info(line)
    _update_job(identity=folder.name, data=str(data.folder))

    waits = job is None or job.waits
    with experiment_lock(folder, waits), _report_unsaved_interrupt(folder), ExitStack() as closing:
        is_finished = (folder / DONE).is_file() and not experiment.rerun
        _update_job(new=not is_finished)
        run = ExperimentRun(
            experiment, data, folder, is_finished=is_finished, _closes_tracked=closing
        )
        if is_finished:
            read_done(folder)  # a damaged one is reported before anything else is done
            _tell_finished(folder)
        else:
            run.last_checkpoint = start_of_training(experiment, data, folder, parent)

        # A finished training that is evaluated by other settings needs no run: they have their own.
        if not is_finished or run_folder_of_evaluation(experiment, folder / "model") == folder:
            record = record_of(experiment, experiment.logged, folder.name, data)
            runs_folder = experiment.paths.runs_folder
            run.tracked = closing.enter_context(
                experiment.tracking.start(runs_folder, folder, record, is_finished)
            )
            _update_job(run_id=run.tracked.run_id)
            if is_finished:
                run.upload()
        yield run


def _update_job(**found: Any) -> None:
    """Write what is known of this job to the sweep's record of it, if it is one."""
    job = current_job()
    if job is not None:
        job.update(**found)


def _tell_finished(folder: Path) -> None:
    """Say, in the log and at the terminal, that nothing is trained."""
    log.info("it is finished already; rerun=true trains it again")
    print(
        f"experiment {folder.name} is finished already; rerun=true trains it again",
        file=sys.stderr,
    )


@contextmanager
def _report_unsaved_interrupt(point: Path) -> Iterator[None]:
    """On Ctrl-C, say whether nothing of the training is on disk that another one resumes from."""
    try:
        yield
    except KeyboardInterrupt:
        if not has_checkpoint(point):
            print(
                "nothing was saved yet; the same command starts the training again",
                file=sys.stderr,
            )
        raise


def _of_another_process(
    experiment: Experiment, data: Prepared, folder: Path, parent: Path | None
) -> ExperimentRun:
    """The run in a process that only trains.

    The first process does all the rest. Nothing changes in the folder before all processes have
    started to train, so that each sees the same.
    """
    run = ExperimentRun(experiment, data, folder, is_first_process=False)
    run.is_finished = (folder / DONE).is_file() and not experiment.rerun
    if run.is_finished:
        return run
    if not experiment.rerun:
        run.last_checkpoint = newest_checkpoint(folder).path
    if run.last_checkpoint is None and parent is not None:
        # The first process may not have copied it yet.
        run.last_checkpoint = newest_checkpoint(parent).path
    return run


def is_first_process() -> bool:
    """False in the other processes that a distributed strategy, or Slurm, started."""
    variables = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK")
    ranks = [os.environ[name] for name in variables if os.environ.get(name)]
    rank = ranks[0] if ranks else "0"
    return rank == "0" and os.environ.get("NODE_RANK", "0") == "0"


def run_folder_of_evaluation(experiment: Experiment, model_folder: Path) -> Path:
    """The folder of the run that an evaluation goes to: the training's, or one of its own."""
    folder = experiment.paths.runs_folder / "points" / read_facts(model_folder).identity
    measured_with = {
        "search": experiment.config["search"],
        **other_precision(experiment, model_folder),
    }
    others = experiment.ensemble_folders
    if others:
        measured_with["ensemble"] = [read_facts(other).identity for other in others]
    if measured_with == {"search": read_config(model_folder).get("search")}:
        return folder
    # Another search or precision is another run: its params say how its metrics were measured.
    return folder / "evaluations" / config_digest(measured_with)[:16]


def other_precision(experiment: Experiment, model_folder: Path) -> dict[str, Any]:
    """{"precision": ...} where it is not the one that the model was trained in."""
    own = experiment.hardware.precision
    trained = read_config(model_folder).get("hardware", {}).get("precision")
    return {} if own == trained else {"precision": own}


def _wanted_outputs(experiment: Experiment) -> Iterator[tuple[str, Path, str]]:
    """(name, where the config wants it, the file by which it is known) of each wanted output."""
    for name, mark in (("model", MODEL), ("training", LEARNING_CURVES)):
        wanted = getattr(experiment.paths, name)
        if wanted is not None:
            yield name, resolve_path(wanted), mark
