"""Train an experiment: prepared data -> a model folder with learning curves and attention maps."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException, SIGTERMException

from attnlab.config.binding import TARGET
from attnlab.data.corpus import TextCleaning
from attnlab.data.datamodule import SeqDataModule
from attnlab.errors import ExperimentError
from attnlab.experiment.experiment import TRAIN_SECTIONS, Experiment
from attnlab.experiment.launch import log
from attnlab.files import write_json
from attnlab.model.model_folder import ModelFacts, load_weights, save_model
from attnlab.runs.pictures import PictureCallback
from attnlab.runs.run import Run
from attnlab.runs.run_folder import DONE
from attnlab.training.checkpoints import (
    BestCheckpoints,
    averaged_weights,
    best_checkpoints,
    outcome_of,
)
from attnlab.training.extension_checks import early_monitors
from attnlab.training.processes import explain_out_of_memory, supervise_forked
from attnlab.training.spool import SPOOL_NAME, MetricSpool, write_history
from attnlab.training.trainer import build_trainer, length_of, own_parts


def train(
    experiment: Experiment,
    data: Any,
    point: Path,
    run: Run,
    resume_from: Path | None = None,
    watch: Sequence[pl.Callback] = (),
) -> None:
    """Train in the experiment's own folder; `done.json` there says that it is finished.

    resume_from: a checkpoint of the same training.
    watch: more callbacks.
    """
    settings, hardware = experiment.training, experiment.hardware
    # 1. The seed, the model that is drawn from it, and what it learns from.
    module, batches = module_of(experiment, data), batches_of(experiment, data)
    # 2. The attention of the same few sentences at every validation.
    pictures = PictureCallback(experiment.task.pictures(experiment, data), point)
    # 3. Train.
    callbacks, loggers = own_parts(experiment.callbacks, experiment.loggers, point / "loggers")
    trainer, checkpoint = build_trainer(
        settings,
        hardware,
        len(batches.train_dataloader()),
        point / "checkpoints",
        MetricSpool(point / SPOOL_NAME),
        [*callbacks, *watch, pictures],
        run.sync,
        experiment.save_every_minutes,
        experiment.trainer,
        loggers,
    )
    fit(
        trainer,
        checkpoint,
        module,
        batches,
        resume_from,
        dict(zip(experiment.callbacks, callbacks, strict=True)),
    )
    # 4. Keep the best model and the curves.
    if trainer.is_global_zero:
        keep(experiment, data, point, checkpoint)


def check_training(experiment: Experiment, data: Any) -> None:
    """Raise ExperimentError, before a tracker has a run of it, where the data show that the
    training cannot start.
    """
    batches = len(batches_of(experiment, data).train_dataloader())
    length_of(experiment.training, batches)
    if problems := early_monitors(experiment.training, batches, experiment.callbacks):
        raise ExperimentError(problems)
    if experiment.initial_weights is not None:
        module_of(experiment, data)


def module_of(experiment: Experiment, data: Any) -> pl.LightningModule:
    """What trains and validates the experiment's model, which is drawn from its seed."""
    pl.seed_everything(experiment.seed, workers=True, verbose=False)
    model = experiment.model(**experiment.task.sizes(data), padding=experiment.padding)
    if (folder := experiment.initial_weights) is not None:
        experiment.task.check_same_tokens(folder, data.folder)
        load_weights(model, folder)
    return experiment.task.module(experiment, model, data)


def batches_of(experiment: Experiment, data: Any) -> SeqDataModule:
    """The batches that the experiment trains on and validates with."""
    settings, workers = experiment.training, experiment.hardware.workers
    return SeqDataModule(
        data,
        settings.batching,
        experiment.padding,
        seed=experiment.seed,
        num_workers=workers,
        accumulate=settings.accumulate,
    )


def fit(
    trainer: pl.Trainer,
    checkpoint: BestCheckpoints,
    module: pl.LightningModule,
    batches: pl.LightningDataModule,
    start: Path | None,
    named: Mapping[str, pl.Callback] = MappingProxyType({}),
) -> None:
    """Train to the end.

    named: the callbacks of the config, by their names there.

    Raises:
        ExperimentError: the training failed.
        KeyboardInterrupt: Ctrl-C stopped it.
        SystemExit: another signal stopped it.
    """
    log.info(
        "training: at most %d steps; %s",
        trainer.max_steps,
        f"from {start}" if start else "from scratch",
    )
    smaller = "try a smaller training.batching.size, a smaller model or hardware.precision=auto"
    try:
        with (
            supervise_forked(trainer),
            explain_out_of_memory(f"{smaller}; the last checkpoint is kept"),
        ):
            trainer.fit(
                module, batches, ckpt_path=start, weights_only=None if start is None else True
            )
    except SIGTERMException:
        sys.exit(128 + signal.SIGTERM)  # by itself it would end with 0, which DVC takes for success
    except RuntimeError as error:
        # Of a metric that a callback of the user's own was to log; others are known when the config
        # is checked.
        if not str(error).startswith("Early stopping conditioned on metric"):
            raise
        raise ExperimentError(f"callbacks: {error}") from error
    except MisconfigurationException as error:
        place = _callback_that_raised(error, named)
        if place is None:
            raise
        raise ExperimentError(f"callbacks.{place}: {' '.join(str(error).split())}") from error
    except SystemExit as stop:
        if not trainer.interrupted or stop.code not in (1, 128 + signal.SIGINT):
            raise
        raise KeyboardInterrupt from None  # of a second Ctrl-C, Lightning makes an exit with code 1
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()  # only the first process evaluates
    if trainer.state.status == "finished" and not checkpoint.best_model_path:
        raise ExperimentError(
            f"callbacks: one of them stopped the training at step {trainer.global_step}, before "
            "its first validation; leave it out, or let it stop the training after a step"
        )
    if trainer.state.status != "finished":
        raise ExperimentError(f"training was interrupted after {trainer.global_step} steps")


def _callback_that_raised(error: Exception, named: Mapping[str, pl.Callback]) -> str | None:
    """The name of the callback in one of whose methods an error was raised."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for name, callback in named.items():
            if frame.f_locals.get("self") is callback:
                return name
    return None


def keep(experiment: Experiment, data: Any, point: Path, checkpoint: BestCheckpoints) -> None:
    """Write the model folder (the mean of the best checkpoints), the learning curves and at last
    `done.json`.
    """
    best = best_checkpoints(checkpoint, experiment.training.average_checkpoints)
    if len(best) < experiment.training.average_checkpoints:
        print(
            f"training ended early: the model is the mean of {len(best)} checkpoint(s)",
            file=sys.stderr,
        )
    weights, step = averaged_weights(best)
    facts = ModelFacts(identity=point.name, step=step, **experiment.task.sizes(data))
    sections = {name: experiment.config[name] for name in ("data", *TRAIN_SECTIONS, "search")}
    if sections["data"].get("cleaning") is None:
        # The corpus sets its cleaning in code, which nobody who loads the model has to run.
        sections["cleaning"] = cleaning_node(experiment.data.cleaning)
    save_model(point / "model", weights, sections, facts, data.folder)
    write_history(point / SPOOL_NAME, point / "training" / "history.csv")
    write_json(point / DONE, {"step": facts.step, **outcome_of(checkpoint)})


def cleaning_node(cleaning: TextCleaning) -> dict[str, Any]:
    """A cleaning as `data.cleaning` of a config says it."""
    return {
        TARGET: f"{type(cleaning).__module__}.{type(cleaning).__qualname__}",
        **asdict(cleaning),
    }
