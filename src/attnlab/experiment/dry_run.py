"""Cost estimates of experiments (`dry_run=true`): parameters, memory and minutes.

They are measured on a few real batches. Each experiment is trained for a few steps, validated and
evaluated on a few rows, in a temporary folder, by the same functions as a real run. An untrained
model never ends a sentence by itself, so the searches stop at the mean length.
"""

from __future__ import annotations

import io
import logging
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
import pytorch_lightning as pl
from rich.console import Console
from rich.table import Table

from attnlab.config.names import readable_name
from attnlab.data.prepared import write_sample
from attnlab.errors import ExperimentError
from attnlab.experiment.config_sources import config_folders
from attnlab.experiment.evaluation import write_evaluation
from attnlab.experiment.preparation import prepared_folder, write_prepared
from attnlab.experiment.run_record import parameters
from attnlab.experiment.training import keep_model, make_batches, make_module, make_trainer
from attnlab.progress import progress_bars
from attnlab.runs.tracking import MlflowTracking
from attnlab.tasks.task import Experiment
from attnlab.terminal import log
from attnlab.training.speed import peak_megabytes

WARM_UP, MEASURED = 4, 16  # steps
# Rows that are evaluated, to tell what each row costs from what every evaluation does
FEW, MANY = 32, 256


@dataclass(frozen=True)
class Estimate:
    """The cost of one experiment.

    minutes: from the start of the command to its metrics of the test split.
    megabytes: of memory, at most.
    """

    name: str
    parameters: int
    steps: int
    seconds_a_step: float
    minutes: float
    megabytes: float


def show_costs(experiments: Sequence[Experiment], points: int) -> None:
    """Print a table of the estimates. points: of the whole sweep, of which these are some."""
    began = psutil.Process().create_time()
    level = log.level
    estimates: list[Estimate] = []
    log.setLevel(logging.WARNING)  # the steps of a trial are no news
    try:
        with progress_bars() as progress:
            for done, experiment in enumerate(experiments):
                progress("dry run", done, len(experiments))
                estimates.append(estimate(experiment, began))
                began = time.time()
    finally:
        log.setLevel(level)
    Console(width=max(120, Console().width)).print(_table(estimates))

    minutes = sum(each.minutes for each in estimates) * points / len(estimates)
    plural = "s" if points > 1 else ""
    print(f"{points} experiment{plural}, one after the other: about {minutes:.2g} minutes")


def _table(estimates: Sequence[Estimate]) -> Table:
    heads = ("experiment", "parameters", "steps", "seconds a step", "memory, MB", "minutes")
    table = Table(*heads, title="Dry run: nothing was trained or kept")
    for each in estimates:
        table.add_row(
            each.name,
            f"{each.parameters:,}",
            f"{each.steps:,}",
            f"{each.seconds_a_step:.3g}",
            f"{each.megabytes:,.0f}",
            f"{each.minutes:.2g}",
        )
    return table


def estimate(experiment: Experiment, began: float) -> Estimate:
    """Measure one experiment. began: when its command started, in seconds since 1970."""
    settings, hardware = experiment.training, experiment.hardware
    if hardware.devices * hardware.nodes > 1:
        raise ExperimentError(
            "dry_run measures one process; choose hardware.devices=1 hardware.strategy=single"
        )
    experiment.use_hardware()
    folder = prepared_folder(experiment)
    with TemporaryDirectory(prefix="attnlab-dry-run-") as temporary, redirect_stdout(io.StringIO()):
        place = Path(temporary)
        if not (folder / "data.json").is_file():
            folder = place / "data"
            write_prepared(experiment, folder)
        data = experiment.task.open_data(folder)
        experiment.task.check_data(experiment, data)
        for count in (FEW, MANY):
            write_sample(folder, place / f"{count} rows", count)
        if isinstance(experiment.tracking, MlflowTracking):
            experiment.tracking.connection(place)  # imports MLflow, which takes time and memory
        mean_length = math.ceil(data.split("validation").target_lengths.mean())
        trial = _short(experiment, mean_length + 1)  # and the end of the sentence
        watch = _Watch()
        point = place / "point"
        with redirect_stderr(io.StringIO()):
            sample = experiment.task.open_data(place / f"{MANY} rows")
            module, batches = make_module(trial, sample), make_batches(trial, sample)
            trainer = make_trainer(trial, sample, batches, point, watch=[watch])
            trainer.fit(module, batches)
            keep_model(trial, sample, trainer, point)
            ended, peak = time.time(), max(peak_megabytes().values())
            seconds = {}
            for count in (FEW, MANY):
                sample_folder, into = place / f"{count} rows", point / f"evaluated {count}"
                since = time.monotonic()
                write_evaluation(trial, point / "model", sample_folder, into)
                seconds[count] = time.monotonic() - since

        steps_per_epoch = settings.steps_per_epoch(len(watch.sizes) * settings.accumulate)
        steps = settings.total_steps(steps_per_epoch)
        steps_between = min(settings.validate_every or steps_per_epoch, steps)
        validations = math.ceil(steps / steps_between)

        # A validation takes time for its rows, and for pictures and a checkpoint whatever its rows.
        most_rows = (settings.limit_batches or math.inf) * settings.batching.size
        validated_rows = min(data.sizes["validation"], most_rows)
        seconds_a_validation = watch.validation * max(1, validated_rows / MANY)
        seconds_a_validation += ended - watch.validated

        most_seconds = 60 * (settings.max_minutes or math.inf)
        training_seconds = min(
            steps * watch.seconds_a_step + validations * seconds_a_validation, most_seconds
        )
        evaluation_seconds = 0.0
        if experiment.chain:
            evaluation_seconds = _evaluation_seconds(seconds, rows=data.sizes["test"])
        start_seconds = watch.started - began
        return Estimate(
            name=readable_name(experiment.logged, folders=config_folders()),
            parameters=watch.parameters,
            steps=steps,
            seconds_a_step=watch.seconds_a_step,
            minutes=(start_seconds + training_seconds + evaluation_seconds) / 60,
            megabytes=peak,
        )


def _evaluation_seconds(measured: Mapping[int, float], rows: int) -> float:
    """The seconds of an evaluation of so many rows.

    measured: {rows: seconds}, for FEW rows and for MANY.
    """
    # Fewer rows than MANY were evaluated where the data have fewer.
    more_rows = max(1, min(MANY, rows) - FEW)
    seconds_a_row = max(0.0, measured[MANY] - measured[FEW]) / more_rows
    return measured[MANY] + seconds_a_row * max(0, rows - MANY)


def _short(experiment: Experiment, length: int) -> Experiment:
    """The same for a few steps and one validation, with searches that write so many tokens."""
    steps, settings = WARM_UP + MEASURED, experiment.training
    changed: dict[str, Any] = {
        "max_steps": steps,
        "max_epochs": None,
        "max_minutes": None,
        "limit_batches": None,
        "validate_every": steps,
        "patience": None,
        "average_checkpoints": 1,
        "continue_from": None,
    }
    if getattr(settings, "attention_schedule", None) is not None:
        changed["attention_schedule"] = None  # most steps, and the dearer ones, have the attention
    search = experiment.search
    if search is not None:
        changed["validation_search"] = _shortened(settings.validation_search, length)
        search = _shortened(search, length)
    return replace(experiment, training=replace(settings, **changed), search=search)


def _shortened(search: Any, length: int) -> Any:
    shorter = min(length, search.max_length)
    return replace(search, max_length=shorter, min_length=min(search.min_length, shorter))


class _Watch(pl.Callback):
    """Times the steps and the validation.

    sizes: of each batch of the epoch, rows times the padded length of both sides; the first of them
        are measured.
    validation, validated: seconds without pictures and checkpoints; when they were over.
    """

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self.parameters = sum(parameters(pl_module.model).values())
        sampler: Any = trainer.train_dataloader.sampler  # type: ignore[union-attr]
        lengths = sampler.source_lengths, sampler.target_lengths
        self.sizes = [
            len(rows) * sum(side[rows].max() + 1 for side in lengths) for rows in sampler.batches()
        ]
        self._ends = [(0, time.monotonic())]
        self.started = time.time()

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        if trainer.global_step > self._ends[-1][0]:  # not between two parts of a batch
            self._ends.append((trainer.global_step, time.monotonic()))

    @property
    def seconds_a_step(self) -> float:
        """The measured steps, scaled to a batch of mean size."""
        _, warmed_up = self._ends[WARM_UP]
        _, ended = self._ends[-1]
        seconds = (ended - warmed_up) / MEASURED
        sizes = self.sizes[WARM_UP : WARM_UP + MEASURED]
        if len(sizes) < MEASURED:  # a short epoch, of which the steps saw every batch
            return seconds
        return float(seconds * np.mean(self.sizes) / np.mean(sizes))

    def on_validation_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self.validation = -time.time()

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self.validated = time.time()
        self.validation += self.validated
