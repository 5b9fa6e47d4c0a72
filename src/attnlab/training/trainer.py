"""Lightning's Trainer with our callbacks, checkpoints and logger."""

from __future__ import annotations

import ctypes
import itertools
import logging
import math
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Checkpoint, EarlyStopping, WeightAveraging
from pytorch_lightning.loggers import Logger
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from pytorch_lightning.utilities.rank_zero import rank_zero_only
from torch import Tensor

from attnlab.config.binding import bind
from attnlab.data.datamodule import EpochLengths
from attnlab.errors import ExperimentError
from attnlab.training.checkpoints import BestCheckpoints, CheckpointFiles, LastCheckpoint
from attnlab.training.continued import ContinuedTraining
from attnlab.training.devices import own_device
from attnlab.training.hardware import Hardware
from attnlab.training.processes import EndWithParent
from attnlab.training.progress import TrainingBar, ValidationLines
from attnlab.training.resume import ExactResume
from attnlab.training.settings import Training
from attnlab.training.speed import SpeedCounters
from attnlab.training.spool import MetricSpool
from attnlab.training.supervised import SupervisedTrainer
from attnlab.training.trainer_section import trainer_arguments

EPOCHS_COUNTED = 200  # where epochs have different numbers of batches


def configured_parts(
    callbacks: Mapping[str, Any], loggers: Mapping[str, Any], folder: Path
) -> tuple[list[pl.Callback], list[Logger]]:
    """The callbacks and the loggers of a config's sections.

    folder: where a logger that needs a `save_dir` and is given none gets a folder of its name.

    Raises ExperimentError with every problem.
    """
    problems: list[str] = []
    built_callbacks = []
    for name, node in callbacks.items():
        built_callbacks.append(_configured_part(node, pl.Callback, f"callbacks.{name}", problems))
    built_loggers = []
    for name, node in loggers.items():
        needs_folder = str(node.get("_target_")).endswith(("CSVLogger", "TensorBoardLogger"))
        complete = {"save_dir": str(folder / name), **node} if needs_folder else node
        built_loggers.append(_configured_part(complete, Logger, f"loggers.{name}", problems))
    if problems:
        raise ExperimentError(problems)
    return built_callbacks, built_loggers


def _configured_part(node: Mapping[str, Any], kind: type, path: str, problems: list[str]) -> Any:
    """The callback or logger of a node.

    If it cannot be built, the result is None and the reason is added to `problems`.
    """
    try:
        return bind(node, kind, path)
    except ExperimentError as error:
        problems += error.problems
    except ImportError as error:  # as of TensorBoardLogger
        missing = str(error).splitlines()[0]
        problems.append(
            f"{path}: a package is missing, install it with pip or leave {path} out: {missing}"
        )
    except MisconfigurationException as error:  # Lightning's own checks of its settings
        problems.append(f"{path}: {' '.join(str(error).split())}")
    return None


def build_trainer(
    settings: Training,
    hardware: Hardware,
    *,
    batches: EpochLengths,
    checkpoints: Path,
    spool: MetricSpool,
    identity: str = "",
    callbacks: Sequence[pl.Callback] = (),
    saved: Callable[[int], None] = lambda reached: None,
    save_every_minutes: float | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    loggers: Sequence[Logger] = (),
) -> SupervisedTrainer:
    """The trainer of an experiment.

    Args:
        batches: of an epoch, as the training loader gives them; a function where epochs differ.
        checkpoints: the folder for the best and the last checkpoint.
        identity: of the experiment, which its checkpoints record.
        saved: called after each checkpoint with the spool's offset in it.
        save_every_minutes: between two checkpoints without a validation; None saves at validations
            only.
        options: more arguments of Lightning's Trainer, as `trainer_problems` lets a config give
            them.

    Raises ExperimentError if training is too short for `average_checkpoints`.
    """
    quiet_lightning(hardware.nodes)
    max_steps, validate_every = length_of(settings, batches)
    first_callbacks = [
        EndWithParent(),
        ContinuedTraining(identity),
        ValidationLines(),
        SpeedCounters(settings.log_every),
        ExactResume(spool, saved),
        *_checkpoint_callbacks(settings, checkpoints, save_every_minutes),
        *_optional_callbacks(settings),
    ]
    if callable(batches) and settings.validate_every is None:
        first_callbacks.append(ValidateEachEpoch())
    arguments = {
        **_hardware_arguments(hardware, has_unused=settings.preliminary_steps > 0),
        **_length_arguments(settings, max_steps, validate_every),
        # Lightning asks a loader for its length once.
        "reload_dataloaders_every_n_epochs": 1 if callable(batches) else 0,
        "log_every_n_steps": settings.log_every,
        "logger": [SpoolLogger(spool), *loggers],
        "plugins": [CheckpointFiles()],
        "callbacks": [*first_callbacks, *callbacks, *_last_callbacks(settings)],
        # Our sampler gives each process its share of every global batch
        "use_distributed_sampler": False,
        "default_root_dir": checkpoints.parent,
        "num_sanity_val_steps": 0,
        "enable_model_summary": False,
        "enable_progress_bar": False,
    }
    # What the config gives comes last: it may replace one of ours.
    arguments.update(trainer_arguments(options, checkpoints.parent))
    return SupervisedTrainer(**arguments)


def _checkpoint_callbacks(
    settings: Training, folder: Path, save_every_minutes: float | None
) -> list[pl.Callback]:
    """What writes the best checkpoints, and the last one."""
    best = BestCheckpoints(
        dirpath=folder,
        filename="{step}",
        monitor=settings.monitored_metric,
        mode=settings.monitor_mode,
        save_top_k=settings.keep_best,
        enable_version_counter=False,
        preliminary_steps=settings.preliminary_steps,
    )
    # After the best ones, whose path and score it saves. Lightning's `save_last` would save only
    # when BestCheckpoints does.
    last = LastCheckpoint(folder, save_every_minutes, settings.accumulate)
    return [best, last]


def _optional_callbacks(settings: Training) -> list[pl.Callback]:
    """Early stopping, and a progress bar at a terminal."""
    callbacks: list[pl.Callback] = []
    if settings.patience is not None:
        early_stopping = Patience(
            settings.monitored_metric,
            patience=settings.patience,
            mode=settings.monitor_mode,
            preliminary_steps=settings.preliminary_steps,
        )
        callbacks.append(early_stopping)
    if sys.stderr.isatty():
        callbacks.append(TrainingBar())
    return callbacks


def _last_callbacks(settings: Training) -> list[pl.Callback]:
    """What comes after the callbacks of the config."""
    averaging: list[pl.Callback] = []
    if settings.average_decay is not None:
        averaging.append(AveragedWeights(settings.average_decay))
    return [*averaging, ReturnFreedMemory(), ValidateAtTheEnd()]


def _hardware_arguments(hardware: Hardware, *, has_unused: bool) -> dict[str, Any]:
    """Where and how Lightning's Trainer computes.

    has_unused: whether some steps leave parts of the model without a gradient. Several processes
        would wait for these gradients.
    """
    own = own_device()  # of a job of a sweep
    strategy: str = hardware.strategy
    if strategy == "single":
        strategy = "auto"
    elif has_unused:
        strategy = f"{strategy}_find_unused_parameters_true"
    return {
        "accelerator": hardware.accelerator,
        "devices": hardware.devices if own is None else [own],
        "num_nodes": hardware.nodes,
        "strategy": strategy,
        "precision": "bf16-mixed" if hardware.precision == "bf16" else "32-true",
    }


def _length_arguments(settings: Training, max_steps: int, validate_every: int) -> dict[str, Any]:
    """When Lightning's Trainer validates and ends.

    Lightning counts what the training loader yields: each part of a batch.
    """
    max_time = None
    if settings.max_minutes is not None:
        max_time = timedelta(minutes=settings.max_minutes)
    limit_train_batches = None
    if settings.limit_batches is not None:
        limit_train_batches = settings.limit_batches * settings.accumulate
    return {
        "max_steps": max_steps,
        "max_epochs": -1,
        "max_time": max_time,
        "accumulate_grad_batches": settings.accumulate,
        "limit_train_batches": limit_train_batches,
        "limit_val_batches": settings.limit_batches,
        "val_check_interval": validate_every * settings.accumulate,
        "check_val_every_n_epoch": None,
    }


def length_of(settings: Training, batches: EpochLengths) -> tuple[int, int]:
    """(steps of a training at most, steps up to its first validation).

    Between two validations are as many steps, or those of an epoch where epochs differ.

    Raises ExperimentError if it is too short for `average_checkpoints`, or for the attention to be
    switched on.
    """
    first_epoch = settings.steps_per_epoch(batches(0) if callable(batches) else batches)
    steps = settings.total_steps(first_epoch)
    if callable(batches):
        steps, ends = _epochs_within(settings, batches)
    validate_every = min(settings.validate_every or first_epoch, steps)
    preliminary_steps = settings.preliminary_steps
    if preliminary_steps >= steps:
        raise ExperimentError(
            f"training ends after {steps} steps, before the attention is on; choose a "
            "training.attention_schedule.from_step below, or a longer training"
        )
    validations = math.ceil(steps / validate_every) - preliminary_steps // validate_every
    rhythm = f"every {validate_every}"
    if callable(batches) and settings.validate_every is None:
        validations = sum(end > preliminary_steps for end in ends)
        rhythm = "at the end of each epoch"
    if settings.average_checkpoints > validations:
        counted = f", those up to step {preliminary_steps} not counted" if preliminary_steps else ""
        raise ExperimentError(
            "training.average_checkpoints must be at most the number of validations, each of which "
            f"writes one checkpoint, got {settings.average_checkpoints}, but {steps} steps are "
            f"validated {validations} time(s), {rhythm}{counted}; choose a smaller "
            "training.validate_every or a longer training"
        )
    return steps, validate_every


def _epochs_within(settings: Training, batches: Callable[[int], int]) -> tuple[int, list[int]]:
    """(steps of a training at most, the step at which each of its epochs ends).

    To count the batches of an epoch is to plan it. After the first `EPOCHS_COUNTED`, epochs are
    taken to be as long as these on average.

    batches: of the epoch with a number; epochs differ.
    """
    limit = math.inf if settings.max_steps is None else settings.max_steps
    epochs = itertools.count() if settings.max_epochs is None else range(settings.max_epochs)
    ends: list[int] = []
    steps = 0.0
    for epoch in epochs:
        if epoch < EPOCHS_COUNTED:
            steps += settings.steps_per_epoch(batches(epoch))
            mean = steps / (epoch + 1)
        else:
            steps += mean
        ends.append(int(min(round(steps), limit)))
        if steps >= limit:
            break
    return ends[-1], ends


class SpoolLogger(Logger):
    """Writes Lightning's metrics to the spool, in the first process only.

    Hyperparameters are ignored. Lightning numbers steps from 0. The spool counts the optimiser
    steps taken, from 1, like the progress lines, the checkpoints and the heat maps.
    """

    def __init__(self, spool: MetricSpool) -> None:
        super().__init__()
        self.spool = spool

    @property
    def name(self) -> str:
        return "spool"

    @property
    def version(self) -> str:
        return ""

    @rank_zero_only
    def log_hyperparams(
        self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any
    ) -> None:
        pass

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        values = dict(metrics)
        epoch = values.pop("epoch", None)  # Lightning puts it among the metrics
        if values:
            epoch = None if epoch is None else int(epoch)
            self.spool.append(values, (step or 0) + 1, epoch)

    @rank_zero_only
    def finalize(self, status: str) -> None:
        self.spool.close()


class ValidateEachEpoch(pl.Callback):
    """Validates at the end of each epoch, where epochs have different numbers of batches.

    Lightning validates where the number of all batches so far is a multiple of `val_check_batch`;
    so that is the number at the end of the epoch.
    """

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # A training that resumes at the end of an epoch has validated already.
        self._set_end(trainer)

    def on_train_batch_start(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        self._set_end(trainer)

    def _set_end(self, trainer: pl.Trainer) -> None:
        started = trainer.fit_loop.epoch_loop.batch_progress
        of_earlier_epochs = started.total.ready - started.current.ready
        trainer.val_check_batch = of_earlier_epochs + trainer.num_training_batches


class ValidateAtTheEnd(Checkpoint):
    """Validates after the last step, even if it is not a multiple of `validate_every`.

    It writes nothing. It is a Checkpoint, and the last one, because at the end of an epoch
    Lightning calls those after all others: by then every callback that stops a training has done
    so.
    """

    def __init__(self) -> None:
        self._validated_step = -1
        # The step at whose end of an epoch a callback stopped the training
        self._stop_after: int | None = None

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        is_asked = self._stop_after is not None and trainer.global_step > self._stop_after
        if is_asked or trainer.global_step >= trainer.max_steps:
            trainer.should_stop = True  # Lightning validates before it stops

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._validated_step = trainer.global_step

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # If stopped here, Lightning would not validate again. So the training makes one more step,
        # and then stops as usual.
        if trainer.should_stop and self._validated_step != trainer.global_step:
            trainer.should_stop = False
            self._stop_after = trainer.global_step


class Patience(EarlyStopping):
    """Early stopping that also stops a resumed training whose patience has already run out.

    It had run out at the last checkpoint.

    preliminary_steps: validations up to this step are passed over.
    """

    def __init__(self, monitor: str, *, preliminary_steps: int = 0, **arguments: Any) -> None:
        super().__init__(monitor, **arguments)
        self._preliminary_steps = preliminary_steps

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.global_step > self._preliminary_steps:
            super().on_validation_end(trainer, pl_module)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.wait_count >= self.patience:
            trainer.should_stop = True


class AveragedWeights(WeightAveraging):
    """An exponential moving average of the weights.

    Validations, their pictures and checkpoints use it.
    """

    # Lightning's own class restores the plain weights before `on_validation_end` draws pictures.
    on_validation_epoch_start = on_validation_epoch_end = pl.Callback.on_validation_epoch_end
    on_validation_start = WeightAveraging.on_validation_epoch_start
    on_validation_end = WeightAveraging.on_validation_epoch_end

    def __init__(self, decay: float) -> None:
        # The decay starts low and grows, as in TensorFlow. Otherwise the first weights would
        # outweigh those of hundreds of steps.
        def average(mean: Tensor, weights: Tensor, n: Tensor | int) -> Tensor:
            kept = min(decay, float((1 + n) / (10 + n)))
            return mean.lerp(weights, 1 - kept)

        super().__init__(use_buffers=False, avg_fn=average)


class ReturnFreedMemory(pl.Callback):
    """Trims the heap after each validation, if the C library can (glibc).

    Decoding and drawing in a validation fragment the heap; without trimming, the process grows with
    each validation.
    """

    def __init__(self) -> None:
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda pad: None)

    def on_validation_end(self, *args: Any) -> None:
        self._trim(0)


def quiet_lightning(nodes: int = 1) -> None:
    """Hide Lightning's information, but for a profiler's report, and known harmless warnings.

    nodes: of the training; several need `srun`, so that there Lightning may warn that it is not
        used.
    """
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    # Of trainer.profiler, for the terminal and the log file
    reports = logging.getLogger("pytorch_lightning.profilers")
    reports.setLevel(logging.INFO)
    reports.handlers = [logging.StreamHandler()]
    harmless = [
        "does not have many workers", "Checkpoint directory .* exists and is not empty",
        "sync_dist=True", "LeafSpec", "GPU available but not used",
        # Of a layer whose weights are made anew in each pass
        "RNN module weights are not part of single contiguous chunk",
        "number of training batches .* is smaller than the logging interval",
    ]  # fmt: skip
    if nodes == 1:
        harmless.append("`srun` command is available on your system but is not used")
    for text in harmless:
        warnings.filterwarnings("ignore", f".*{text}.*")
