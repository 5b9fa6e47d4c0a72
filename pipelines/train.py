"""Train: prepared data -> a model folder, with learning curves and attention maps on the way.

    python pipelines/train.py model/attention=general training.teacher_forcing.ratio=0.5

Alone it also prepares what is missing, evaluates what it trained and reports on it (`chain: true`); under DVC these
are stages.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from evaluate import evaluate_and_track
from experiment import TRAIN_SECTIONS, TRAIN_SOURCES, Experiment, check, here, output_folder
from launch import launch
from prepare import prepare_where_missing
from report import report

if TYPE_CHECKING:
    from attnlab.tracking.run import Run


def train(experiment: Experiment, data: Any, point: Path, run: Run) -> None:
    """Train in the experiment's own folder; `done.json` there says that it is finished."""
    import pytorch_lightning as pl
    import torch
    from pytorch_lightning.utilities.exceptions import SIGTERMException

    from attnlab.composition.error import ExperimentError
    from attnlab.data.datamodule import SeqDataModule
    from attnlab.tracking.picture_callback import PictureCallback
    from attnlab.training.checkpoint_average import best_checkpoints
    from attnlab.training.spool import SPOOL_NAME, MetricSpool, SpoolLogger
    from attnlab.training.trainer import build_trainer

    # 1. The model, from the seed on.
    pl.seed_everything(experiment.seed, workers=True, verbose=False)
    model = experiment.model(**experiment.task.sizes(data), padding=experiment.padding)
    # 2. What trains and validates it, and what it learns from.
    settings = experiment.training
    module = experiment.task.module(experiment, model, data)
    batches = SeqDataModule(
        data,
        settings.batching,
        experiment.padding,
        seed=experiment.seed,
        num_workers=experiment.hardware.workers,
    )
    # 3. The same few sentences' attention at every validation.
    pictures = PictureCallback(
        experiment.task.pictures(experiment, data),
        point,
        experiment.tracking.keep_heat_maps,
        settings.monitored_metric,
        settings.monitor_mode,
        run.deliver,
    )
    # 4. Train.
    trainer, checkpoint = build_trainer(
        settings,
        experiment.hardware,
        len(batches.train_dataloader()),
        point / "checkpoints",
        SpoolLogger(MetricSpool(point / SPOOL_NAME)),
        [pictures],
    )
    try:
        trainer.fit(module, batches)
    except SIGTERMException:
        sys.exit(128 + signal.SIGTERM)  # by itself it would end with 0, which DVC takes for success
    except SystemExit:
        if not trainer.interrupted:
            raise
        raise KeyboardInterrupt from None  # Lightning makes a silent exit of it
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()  # evaluating is the first process's business alone
    if trainer.state.status != "finished" or not checkpoint.best_model_path:
        raise ExperimentError(f"training was interrupted after {trainer.global_step} steps")
    # 5. Keep the best model and the curves.
    if trainer.is_global_zero:
        best = best_checkpoints(checkpoint, settings.average_checkpoints)
        if len(best) < settings.average_checkpoints:
            print(f"training ended early: the model is the mean of {len(best)} checkpoint(s)", file=sys.stderr)
        keep(experiment, data, point, best)


def keep(experiment: Experiment, data: Any, point: Path, best: list[Path]) -> None:
    """Write the model folder, the learning curves and at last `done.json`.

    best: the checkpoints whose mean the model is.
    """
    from attnlab.composition.atomic import atomic_file
    from attnlab.model.model_folder import ModelFacts, save_model
    from attnlab.training.checkpoint_average import averaged_weights
    from attnlab.training.history import write_history

    weights, step = averaged_weights(best)
    facts = ModelFacts(identity=point.name, step=step, **experiment.task.sizes(data))
    sections = experiment.sections(("data", *TRAIN_SECTIONS, "search"))
    save_model(point / "model", weights, sections, facts, data.folder)
    write_history(point, point / "training" / "history.csv")
    with atomic_file(point / "done.json") as path:
        path.write_text(json.dumps({"step": facts.step}) + "\n")


def publish(point: Path, experiment: Experiment) -> None:
    """Copy the finished outputs to where the config wants them."""
    from attnlab.composition.atomic import atomic_folder

    for name, wanted in (("model", experiment.paths.model), ("training", experiment.paths.training)):
        if wanted is not None:
            with atomic_folder(here(wanted)) as temporary:
                shutil.copytree(point / name, temporary, dirs_exist_ok=True)


@contextmanager
def only_one_at_a_time(point: Path) -> Iterator[None]:
    """Wait, and say so, while another process trains the same experiment; afterwards its result is there."""
    from filelock import FileLock, Timeout

    lock = FileLock(point / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"another process trains experiment {point.name}; waiting for it", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def clear(point: Path) -> None:
    """Remove what an earlier, unfinished or repeated training left, but for the lock that is held."""
    for path in point.iterdir():
        if path.name != "lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def data_to_train_on(experiment: Experiment) -> Any:
    """The prepared data of an experiment, made where they are missing; raises ExperimentError where they do not fit."""
    data = experiment.task.open_data(prepare_where_missing(experiment))
    experiment.task.check_data(experiment, data)
    return data


def main(config: DictConfig) -> float | None:
    from attnlab.tracking.run import RUN_FILE
    from attnlab.tracking.settings import RunRecord

    experiment = check(config)
    experiment.use_hardware()
    data = data_to_train_on(experiment)
    identity = experiment.identity(TRAIN_SECTIONS, data.digest, TRAIN_SOURCES)
    point = experiment.paths.runs_folder / "points" / identity
    point.mkdir(parents=True, exist_ok=True)
    record = RunRecord(
        config=experiment.config,
        identity=identity,
        data_digest=data.digest,
        data_source=str(data.folder),
        data_facts=data.sizes,
        data_columns=experiment.task.columns,
    )
    if not is_first_process():
        from attnlab.tracking.run import UntrackedRun

        train(experiment, data, point, UntrackedRun())  # the first process does all the rest
        return None
    with only_one_at_a_time(point):
        if (point / "done.json").is_file() and not experiment.rerun:
            print(f"already trained: experiment {identity}; rerun=true trains it again", file=sys.stderr)
        else:
            if (point / RUN_FILE).is_file() and not (point / "done.json").is_file():
                # A training that was killed could not close its run.
                with experiment.tracking.start(experiment.paths.runs_folder, point, record) as run:
                    run.finish("KILLED", "stopped before it was finished")
            clear(point)
            with experiment.tracking.start(experiment.paths.runs_folder, point, record) as run:
                train(experiment, data, point, run)
                run.deliver()
                run.log_model(point / "model")
        publish(point, experiment)
    if not experiment.chain:
        return None
    output = output_folder()
    metrics = evaluate_and_track(experiment, point / "model", data.folder, output / "evaluation")
    shutil.copyfile(output / "evaluation" / "metrics.json", output / "metrics.json")
    page = report(experiment, data.folder, point / "training", output / "evaluation", output / "report")
    print(f"metrics: {output / 'metrics.json'}\nreport:  {page}\nmodel:   {point / 'model'}")
    print(f"MLflow:  {experiment.tracking.where_to_look(experiment.paths.runs_folder)}")
    value = metrics.get(experiment.training.monitor)
    return None if value is None else float(value)


def is_first_process() -> bool:
    """False in the other processes that a distributed strategy, or Slurm, started by this same command."""
    from pytorch_lightning.utilities.rank_zero import rank_zero_only

    return getattr(rank_zero_only, "rank", 0) == 0 and os.environ.get("NODE_RANK", "0") == "0"


if __name__ == "__main__":
    launch(main)
