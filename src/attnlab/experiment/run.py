"""The run of an experiment: its folder, its lock, where training goes on, and what it leaves.

The folder is `runs/points/<identity>`; `open_run` gives it to one process at a time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import torch
from filelock import Timeout

from attnlab.config.identity import config_digest
from attnlab.config.names import readable_name
from attnlab.config.paths import LEARNING_CURVES, MODEL, check_replaceable, path_from
from attnlab.data.prepared import Prepared
from attnlab.errors import ExperimentError
from attnlab.evaluation.formed_attention import FOLDER as FORMED
from attnlab.experiment.continued import problems_of_continuing
from attnlab.experiment.hydra_config import config_folders
from attnlab.experiment.hydra_job import command_line
from attnlab.experiment.sections import TRAIN_SECTIONS
from attnlab.files import atomic_folder, read_own_record, resolve_path
from attnlab.locks import lock, lock_files, locks_in
from attnlab.model.model_folder import ShapesAlone, read_config, read_facts
from attnlab.runs.mlflow_variables import environment_note
from attnlab.runs.run import Run, UntrackedRun
from attnlab.runs.run_folder import (
    DONE,
    RUN_FOLDER,
    RunRecord,
    clear,
    reset_without_checkpoint,
)
from attnlab.runs.shown_params import shown_params
from attnlab.runs.sweep_claims import PointHeldError
from attnlab.runs.sweep_job import current_job
from attnlab.tasks.task import Experiment
from attnlab.terminal import echo, log
from attnlab.training.spool import BEFORE_LAST, LAST, SPOOL_NAME

# What makes the weights: the identity of an experiment, and DVC's, follows from this code.
TRAIN_SOURCES = (
    "attnlab.experiment.training:make_module,make_batches,make_trainer,keep_model",
    "task:module,sizes,read_data,prepared",
)

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
    tracked: Run = field(default_factory=UntrackedRun)
    _tracking: ExitStack = field(default_factory=ExitStack)
    _found: dict[str, Any] = field(default_factory=dict)

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
        self._tracking.close()
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
    update_job = (lambda **found: None) if job is None else job.update
    for line in start_lines(experiment, data, folder):
        log.info(line) if job else echo(line)
    update_job(identity=folder.name, data=str(data.folder))

    waits = job is None or job.waits
    with experiment_lock(folder, waits), _report_unsaved_interrupt(folder), ExitStack() as tracking:
        is_finished = (folder / DONE).is_file() and not experiment.rerun
        update_job(new=not is_finished)
        run = ExperimentRun(experiment, data, folder, is_finished=is_finished, _tracking=tracking)
        if is_finished:
            read_done(folder)  # a damaged one is reported before anything else is done
            log.info("it is finished already; rerun=true trains it again")
            print(
                f"experiment {folder.name} is finished already; rerun=true trains it again",
                file=sys.stderr,
            )
        else:
            run.last_checkpoint = _start_of_training(experiment, data, folder, parent)

        # A finished training that is evaluated by other settings needs no run: they have their own.
        model = folder / "model"
        if not is_finished or run_folder_of_evaluation(experiment, model) == folder:
            record = record_of(experiment, experiment.logged, folder.name, data)
            runs_folder = experiment.paths.runs_folder
            run.tracked = tracking.enter_context(
                experiment.tracking.start(runs_folder, folder, record, is_finished)
            )
            update_job(run_id=run.tracked.run_id)
            if is_finished:
                run.upload()
        yield run


@contextmanager
def _report_unsaved_interrupt(point: Path) -> Iterator[None]:
    """On Ctrl-C, say whether nothing of the training is on disk that another one resumes from."""
    try:
        yield
    except KeyboardInterrupt:
        if not _has_checkpoint(point):
            print(
                "nothing was saved yet; the same command starts the training again",
                file=sys.stderr,
            )
        raise


def _has_checkpoint(point: Path) -> bool:
    """Whether a training in this folder has finished, or come to a checkpoint."""
    came_to = (point / DONE, point / "checkpoints" / LAST, point / "checkpoints" / BEFORE_LAST)
    return any(path.is_file() for path in came_to)


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


def _start_of_training(
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


def start_lines(experiment: Experiment, data: Prepared, folder: Path) -> list[str]:
    """What is about to be trained, on what, and where it goes."""
    # Built on the meta device, which costs no memory, to count its parameters.
    with torch.device("meta"), ShapesAlone():
        sizes = experiment.task.sizes(data)
        counts = parameters(experiment.model(**sizes, padding=experiment.padding))
    job = current_job()
    name = readable_name(experiment.logged, folders=config_folders())
    if job is not None:
        name = job.record.name
    total = sum(counts.values())
    parts = ", ".join(f"{part} {count:,}" for part, count in counts.items())
    rows = ", ".join(f"{count:,} {split}" for split, count in data.sizes.items())
    hardware = experiment.hardware
    processes = f"{hardware.devices} x {hardware.accelerator}"

    lines = [
        f"experiment {folder.name}: {name}",
        f"  model    {total:,} parameters: {parts}",
        f"  data     {rows} rows in {data.folder}",
        f"  device   {processes}, {hardware.threads} thread(s), precision {hardware.precision}",
        f"  folder   {folder}",
        f"  MLflow   {where_to_look(experiment)}",
    ]
    note = environment_note(experiment.config["tracking"])
    if note is not None:
        lines.append(note)
    return lines


def where_to_look(experiment: Experiment) -> str:
    """What a person types and opens to see the runs of MLflow, one or two lines."""
    return experiment.tracking.where_to_look(experiment.paths.runs_folder, experiment.task.view)


def parameters(model: torch.nn.Module) -> dict[str, int]:
    """How many numbers each part of a model learns, where it learns any."""
    counts = {}
    for name, part in model.named_children():
        count = sum(parameter.numel() for parameter in part.parameters())
        if count > 0:
            counts[name] = count
    return counts


def is_first_process() -> bool:
    """False in the other processes that a distributed strategy, or Slurm, started."""
    variables = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK")
    ranks = [os.environ[name] for name in variables if os.environ.get(name)]
    rank = ranks[0] if ranks else "0"
    return rank == "0" and os.environ.get("NODE_RANK", "0") == "0"


def record_of(
    experiment: Experiment,
    config: dict[str, Any],
    identity: str,
    data: Prepared,
    name: str | None = None,
) -> RunRecord:
    """What the tracker is given of a run.

    In a sweep its name and some of its tags and params are the job's.
    """
    tags = {"repeatable": experiment.hardware.repeatable}
    folders = config_folders()
    title = readable_name(config, folders=folders)
    varied = {}
    job = current_job()
    if job is not None:
        tags |= job.tags
        name = title = job.record.name
        varied = job.record.choices

    task = experiment.task
    return RunRecord(
        config=config,
        identity=identity,
        data_digest=data.digest,
        data_source=path_from(experiment.paths.runs_folder, data.folder),
        data_facts=data.sizes,
        data_columns=task.rows.raw_columns,
        served=task.predictor().served,
        example=data.split("validation").source_text(0),
        tags=tags,
        name=name,
        command=command_line(),
        title=title,
        params=shown_params(config, folders, varied),
        main_metrics=experiment.main_metrics,
        view=task.view,
    )


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


def _wanted_outputs(experiment: Experiment) -> Iterator[tuple[str, Path, str]]:
    """(name, where the config wants it, the file by which it is known) of each wanted output."""
    for name, mark in (("model", MODEL), ("training", LEARNING_CURVES)):
        wanted = getattr(experiment.paths, name)
        if wanted is not None:
            yield name, resolve_path(wanted), mark


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
    theirs = read_config(parent / "model")
    different = []
    for name in ("data", "padding", "model"):
        if theirs[name] != experiment.config[name]:
            different.append(name)
    if different:
        raise ExperimentError(
            f"training.continue_from: the experiment {identity} differs in {', '.join(different)}; "
            "choose the same, or use its weights alone, "
            f"training.initial_weights={parent / 'model'}"
        )
    problems = []
    for problem in problems_of_continuing(experiment.config, theirs, experiment.training):
        problems.append(
            f"training.continue_from: the experiment {identity} cannot go on with another setting: "
            f"{problem}; or use its weights alone, training.initial_weights={parent / 'model'}"
        )
    if problems:
        raise ExperimentError(problems)
    experiment.task.check_same_tokens(parent / "model", data.folder)

    return parent


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
        if not _has_checkpoint(point) and reset_without_checkpoint(point):
            clear(point, *held_lock, RUN_FOLDER)
            return
        experiment.tracking.close_runs(experiment.paths.runs_folder, point)
        # Killed between these, it must not be taken for finished, nor go on without its metrics.
        clear(point / "checkpoints")
        (point / DONE).unlink(missing_ok=True)
        clear(point, *held_lock)


def read_done(point: Path) -> dict[str, Any]:
    """What a finished training found; raises ExperimentError where its file is damaged."""
    return read_own_record(point / DONE, dict[str, Any], "train it again with rerun=true")
