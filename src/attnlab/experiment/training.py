"""Training of an experiment: its module, its batches, its trainer, and its model folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytorch_lightning as pl

from attnlab.config.target import TARGET
from attnlab.data.corpus import TextCleaning
from attnlab.data.datamodule import SeqDataModule
from attnlab.data.prepared import Prepared
from attnlab.errors import ExperimentError
from attnlab.experiment.sections import TRAIN_SECTIONS
from attnlab.files import write_json
from attnlab.model.fast import speed_up
from attnlab.model.model_folder import ModelFacts, load_weights, save_model
from attnlab.runs.pictures import PictureCallback
from attnlab.runs.run_folder import DONE
from attnlab.tasks.task import Experiment
from attnlab.training.checkpoints import averaged_weights, best_checkpoints, outcome_of
from attnlab.training.configured_parts import configured_parts
from attnlab.training.extension_checks import early_monitors
from attnlab.training.processes import explain_out_of_memory
from attnlab.training.spool import SPOOL_NAME, MetricSpool, write_history
from attnlab.training.supervised import SupervisedTrainer
from attnlab.training.trainer import build_trainer
from attnlab.training.training_length import check_length, length_of


def make_model(experiment: Experiment, data: Prepared) -> Any:
    """The model as its training begins: drawn from the experiment's seed, or with given weights."""
    pl.seed_everything(experiment.seed, workers=True, verbose=False)
    with explain_out_of_memory("make the sizes of model smaller"):
        model = experiment.model(**experiment.task.sizes(data), padding=experiment.padding)
    experiment.task.read_vocabulary(model, data)
    folder = experiment.initial_weights
    if folder is not None:
        experiment.task.check_same_tokens(folder, data.folder)
        load_weights(model, folder)
    return model


def make_module(experiment: Experiment, data: Prepared) -> pl.LightningModule:
    """What trains and validates the experiment's model."""
    model = make_model(experiment, data)
    if experiment.hardware.fast:
        speed_up(model)
    return experiment.task.module(experiment, model, data)


def make_batches(experiment: Experiment, data: Prepared) -> SeqDataModule:
    """The batches that the experiment trains on and validates with."""
    settings = experiment.training
    own_seed = settings.batching.seed
    return SeqDataModule(
        data,
        settings.batching,
        experiment.padding,
        seed=experiment.seed if own_seed is None else own_seed,
        num_workers=experiment.hardware.workers,
        accumulate=settings.accumulate,
    )


def make_trainer(
    experiment: Experiment,
    data: Prepared,
    batches: SeqDataModule,
    folder: Path,
    after_checkpoint: Callable[[int], None] = lambda reached: None,
    watch: Sequence[pl.Callback] = (),
) -> SupervisedTrainer:
    """The trainer, which writes checkpoints, metrics and heat maps to a folder, that of the run.

    after_checkpoint: called after each one, with how far the spool of metrics is safe in it.
    watch: more callbacks.
    """
    # The attention of the same few sentences at every validation.
    of_task = experiment.task.pictures(experiment, data)
    draws = experiment.tracking.draws_pictures
    pictures = PictureCallback(of_task, folder, experiment.pictures, draws)
    # Lightning's own parts, or the user's, as the config names them.
    callbacks, loggers = configured_parts(
        experiment.callbacks, experiment.loggers, folder / "loggers"
    )
    spool = MetricSpool(folder / SPOOL_NAME)
    trainer = build_trainer(
        experiment.training,
        experiment.hardware,
        epochs=batches.epoch_lengths(experiment.hardware.processes),
        checkpoints=folder / "checkpoints",
        identity=folder.name,
        spool=spool,
        callbacks=[*callbacks, *watch, pictures],
        after_checkpoint=after_checkpoint,
        save_every_minutes=experiment.save_every_minutes,
        options=experiment.trainer,
        loggers=loggers,
    )
    trainer.callbacks_by_name = dict(zip(experiment.callbacks, callbacks, strict=True))
    return trainer


def check_training(experiment: Experiment, data: Prepared) -> None:
    """Raise ExperimentError, before a tracker has a run, where the training cannot start."""
    epochs = make_batches(experiment, data).epoch_lengths(experiment.hardware.processes)
    check_length(experiment.training, length_of(experiment.training, epochs))
    problems = early_monitors(experiment.training, epochs, experiment.callbacks)
    if problems:
        raise ExperimentError(problems)
    if experiment.initial_weights is not None or experiment.training.frozen:
        make_module(experiment, data)


def training_steps(experiment: Experiment, data: Prepared) -> int:
    """The step at which the training ends at the latest."""
    epochs = make_batches(experiment, data).epoch_lengths(experiment.hardware.processes)
    return length_of(experiment.training, epochs).steps


def keep_model(
    experiment: Experiment, data: Prepared, trainer: SupervisedTrainer, folder: Path
) -> None:
    """Write the model folder (the mean of the best checkpoints), the learning curves, `done.json`.

    The last one says that the training in this folder is finished.
    """
    wanted = experiment.training.average_checkpoints
    best = best_checkpoints(trainer.best_checkpoints, wanted)
    if len(best) < wanted:
        print(
            f"training ended early: the model is the mean of {len(best)} checkpoint(s)",
            file=sys.stderr,
        )
    weights, step = averaged_weights(best)
    facts = ModelFacts(folder.name, step, experiment.task.sizes(data))
    kept = ("task", "data", *TRAIN_SECTIONS, "search")
    sections = {name: experiment.config[name] for name in kept}
    if sections["data"].get("cleaning") is None:
        # The corpus sets its cleaning in code, which nobody who loads the model has to run.
        sections["cleaning"] = cleaning_node(experiment.data.cleaning)
    files = experiment.task.shared_paths(data.folder)
    example = experiment.task.example(data)
    save_model(folder / "model", weights, sections, facts, files, example)
    write_history(folder / SPOOL_NAME, folder / "training" / "history.csv")
    write_json(folder / DONE, {"step": facts.step, **outcome_of(trainer.best_checkpoints)})


def cleaning_node(cleaning: TextCleaning) -> dict[str, Any]:
    """A cleaning as `data.cleaning` of a config says it."""
    name = f"{type(cleaning).__module__}.{type(cleaning).__qualname__}"
    return {TARGET: name, **asdict(cleaning)}
