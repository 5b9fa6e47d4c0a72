"""The command `pipelines/train.py`: one experiment from its data to its report; what is finished is
not done again.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import torch

from attnlab.config.names import readable_name
from attnlab.experiment.evaluation import (
    evaluate_and_track,
    kept_evaluation,
    record_of,
    state_of_its_run,
)
from attnlab.experiment.experiment import REPORT_SOURCES, Experiment, output_folder
from attnlab.experiment.launch import log, say
from attnlab.experiment.point import (
    begin_anew,
    check_wanted_places,
    checkpoint_to_go_on_from,
    continue_training,
    only_one_at_a_time,
    parent_of,
    point_of,
    publish,
    read_done,
)
from attnlab.experiment.preparation import prepare_where_missing
from attnlab.files import atomic_file, atomic_folder
from attnlab.model.model_folder import ShapesAlone
from attnlab.report.reporting import report
from attnlab.runs.mlflow_variables import said_by_environment
from attnlab.runs.run import Run, UntrackedRun
from attnlab.runs.run_folder import DONE
from attnlab.runs.sweep_job import current_job
from attnlab.training.spool import LAST


def data_to_train_on(experiment: Experiment) -> Any:
    """The prepared data of an experiment, made where they are missing; raises ExperimentError where
    they do not fit.
    """
    data = experiment.task.open_data(prepare_where_missing(experiment))
    experiment.task.check_data(experiment, data)
    return data


def main(experiment: Experiment) -> Any:
    experiment.use_hardware()
    check_wanted_places(experiment)
    if is_first_process():
        experiment.tracking.follow_moved_folder(experiment.paths.runs_folder)
    data = data_to_train_on(experiment)
    parent, point = parent_of(experiment, data), point_of(experiment, data)
    if not is_first_process():
        # The first process does all the rest. Nothing changes here before all of them have started
        # to train, so that each sees the same.
        if experiment.rerun or not (point / DONE).is_file():
            last = None if experiment.rerun else checkpoint_to_go_on_from(point)
            if last is None and parent is not None:  # the first process may not have copied it yet
                last = parent / "checkpoints" / LAST
            train_in(experiment, data, point, UntrackedRun(), last)
        return None
    job = current_job()
    began = psutil.Process().create_time() if job is None else job.record.started
    for line in start_lines(experiment, data, point):
        log.info(line) if job else say(line)
    update_job = (lambda **found: None) if job is None else job.update
    update_job(identity=point.name, data=str(data.folder))
    record = record_of(experiment, experiment.logged, point.name, data)
    with only_one_at_a_time(point):
        finished = (point / DONE).is_file() and not experiment.rerun
        update_job(new=not finished)
        last = None
        if finished:
            read_done(point)  # a damaged one is reported before anything else is done
            log.info("it is finished already; rerun=true trains it again")
            print(
                f"experiment {point.name} is finished already; rerun=true trains it again",
                file=sys.stderr,
            )
        else:
            check_before_training(experiment, data)
            last = None if experiment.rerun else checkpoint_to_go_on_from(point)
            if last is None:
                begin_anew(experiment, point)
                last = None if parent is None else continue_training(parent, point)
        if not finished or state_of_its_run(experiment, point / "model") == point:
            with experiment.tracking.start(
                experiment.paths.runs_folder, point, record, finished
            ) as run:
                update_job(run_id=run.run_id)
                if not finished:
                    train_in(experiment, data, point, run, last)
                run.sync()
        publish(point, experiment)
    done = read_done(point)
    log.info("trained: the model is of step %s, in %s", done.get("step"), point / "model")
    if experiment.chain:
        evaluate_and_report(experiment, data, point, None if finished or last else began)
    values = [done[name] for name in experiment.sweep.objectives]
    return values[0] if len(values) == 1 else tuple(values)  # as Hydra's sweepers take them


def check_before_training(experiment: Experiment, data: Any) -> None:
    from attnlab.experiment.training import check_training  # imports Lightning, which takes seconds

    check_training(experiment, data)


def train_in(
    experiment: Experiment, data: Any, point: Path, run: Run, resume_from: Path | None
) -> None:
    # Imports Lightning, which takes seconds; what is finished needs none
    from attnlab.experiment.training import train

    train(experiment, data, point, run, resume_from)


def start_lines(experiment: Experiment, data: Any, point: Path) -> list[str]:
    """What is about to be trained, on what, and where it goes."""
    with torch.device("meta"), ShapesAlone():
        counts = parameters(
            experiment.model(**experiment.task.sizes(data), padding=experiment.padding)
        )
    parts = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    rows = ", ".join(f"{count:,} {split}" for split, count in data.sizes.items())
    hardware = experiment.hardware
    of_environment = said_by_environment(experiment.config["tracking"])
    return [
        f"experiment {point.name}: {readable_name(experiment.logged)}",
        f"  model    {sum(counts.values()):,} parameters: {parts}",
        f"  data     {rows} rows in {data.folder}",
        f"  device   {hardware.devices} x {hardware.accelerator}, {hardware.threads} thread(s), "
        f"precision {hardware.precision}",
        f"  folder   {point}",
        f"  MLflow   {experiment.tracking.where_to_look(experiment.paths.runs_folder)}",
        *([] if of_environment is None else [of_environment]),
    ]


def parameters(model: torch.nn.Module) -> dict[str, int]:
    """How many numbers each part of a model learns, where it learns any."""
    counts = {
        name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()
    }
    return {name: count for name, count in counts.items() if count}


def evaluate_and_report(
    experiment: Experiment, data: Any, point: Path, began: float | None
) -> None:
    """What the stages behind this one would do, into Hydra's output folder; what was evaluated
    before is not again.

    began: when the whole experiment did, in seconds since 1970; None where it was trained in more
        than one piece.
    """
    output = output_folder()
    kept = kept_evaluation(experiment, data, point)

    def duration() -> dict[str, float]:
        return {} if began is None else {"time/minutes": (time.time() - began) / 60}

    evaluate_and_track(
        experiment, point / "model", data.folder, output / "evaluation", kept, True, duration
    )
    with atomic_file(output / "metrics.json") as path:
        shutil.copyfile(output / "evaluation" / "metrics.json", path)
    # What the page shows follows from these; the same page is not written twice.
    inputs = f"{data.digest}\n{kept.name}\n{sorted(experiment.choices.items())}"
    shown = experiment.identity(tuple(experiment.values), inputs, REPORT_SOURCES)
    reported = point / "reported" / shown
    if not (reported / "index.html").is_file():
        shutil.rmtree(reported.parent, ignore_errors=True)
        report(experiment, data.folder, point / "training", kept, reported)
    with atomic_folder(output / "report") as temporary:
        shutil.copytree(reported, temporary, dirs_exist_ok=True)
    page = output / "report" / "index.html"
    for line in (
        f"metrics: {output / 'metrics.json'}",
        f"report:  {page}",
        f"model:   {point / 'model'}",
    ):
        say(line)
    say(f"MLflow:  {experiment.tracking.where_to_look(experiment.paths.runs_folder)}")


def is_first_process() -> bool:
    """False in the other processes that a distributed strategy, or Slurm, started by this same
    command.
    """
    ranks = [
        os.environ.get(name)
        for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK")
    ]
    return next(filter(None, ranks), "0") == "0" and os.environ.get("NODE_RANK", "0") == "0"
