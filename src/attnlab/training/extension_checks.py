"""Checks of what a config adds to Lightning's Trainer (trainer, callbacks, loggers).

They run before anything else does.
"""

from __future__ import annotations

import difflib
import inspect
import os
import types
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import (
    BackboneFinetuning,
    BatchSizeFinder,
    GradientAccumulationScheduler,
    LearningRateFinder,
    ProgressBar,
    StochasticWeightAveraging,
    Timer,
)
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from attnlab.data.datamodule import EpochLengths
from attnlab.errors import ExperimentError, masked, show
from attnlab.training.configured_parts import configured_parts
from attnlab.training.settings import Training
from attnlab.training.trainer import quiet_lightning
from attnlab.training.trainer_section import trainer_arguments
from attnlab.training.training_length import length_of

# Callbacks that would silently override a setting of attnlab, or need what its modules lack.
REPLACED: dict[type[pl.Callback], str] = {
    BackboneFinetuning: (
        "its models have no backbone; use training.initial_weights to go on from trained weights"
    ),
    BatchSizeFinder: "use training.batching.size",
    GradientAccumulationScheduler: "use training.accumulate",
    LearningRateFinder: "use training.optimizer.lr",
    ProgressBar: "attnlab shows a bar of its own, at a terminal alone; leave this one out",
    StochasticWeightAveraging: "use training.average_decay",
    Timer: "use training.max_minutes",
}
# Packages whose callbacks log no metrics.
LOG_NO_METRICS = ("attnlab", "pytorch_lightning", "builtins")
# What a callback that adds a metric calls, or writes to.
LOGGING_NAMES = frozenset({"log", "log_dict", "callback_metrics"})


def check_extensions(
    trainer: Mapping[str, Any],
    callbacks: Mapping[str, Any],
    loggers: Mapping[str, Any],
    metrics: Collection[str],
) -> None:
    """Build what these sections of a config describe, as a training would.

    trainer: without the problems that `trainer_problems` finds.
    metrics: the names that a callback can monitor.

    Raises ExperimentError with every problem.
    """
    quiet_lightning()
    problems = _mlflow_problems(loggers)
    if problems:
        raise ExperimentError(problems)

    built_callbacks, built_loggers = configured_parts(callbacks, loggers, Path(os.devnull))
    callbacks_by_name = dict(zip(callbacks, built_callbacks, strict=True))
    problems = _callback_problems(callbacks_by_name, metrics)
    if problems:
        raise ExperimentError(problems)

    # What only Lightning knows, such as two callbacks that would share their state. Here it needs
    # no device, and does not look for a cluster: those of the training are checked when it starts.
    arguments: dict[str, Any] = {
        "accelerator": "cpu",
        "devices": 1,
        "plugins": [LightningEnvironment()],
        "callbacks": built_callbacks,
        "logger": built_loggers,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "default_root_dir": os.devnull,
    }
    try:
        pl.Trainer(**(arguments | trainer_arguments(trainer)))
    except (MisconfigurationException, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ExperimentError(
            f"trainer, callbacks and loggers do not go together: {reason}"
        ) from error


def _callback_problems(callbacks: Mapping[str, pl.Callback], metrics: Collection[str]) -> list[str]:
    """Callbacks that do not fit into attnlab, and metrics to monitor that nothing logs."""
    problems = []
    all_metrics_are_known = not any(_may_log(type(callback)) for callback in callbacks.values())

    for name, callback in callbacks.items():
        for kind, remedy in REPLACED.items():
            if isinstance(callback, kind):
                problems.append(
                    f"callbacks.{name}: {type(callback).__name__} does not fit into attnlab: "
                    f"{remedy}"
                )

        monitor = getattr(callback, "monitor", None)
        if isinstance(monitor, str) and monitor not in metrics and all_metrics_are_known:
            close = difflib.get_close_matches(monitor, metrics, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            problems.append(
                f"callbacks.{name}.monitor must be one of {', '.join(sorted(metrics))}, got "
                f"{show(monitor)}{hint}"
            )
    return problems


def _may_log(kind: type) -> bool:
    """Whether the code of a class, or of a base of it, names what logs a metric."""
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] in LOG_NO_METRICS:
            continue
        for member in vars(base).values():
            code = _code_of(member)
            if code is not None and not LOGGING_NAMES.isdisjoint(_names_in(code)):
                return True
    return False


def _code_of(member: Any) -> types.CodeType | None:
    """The code of a class's member: a method of any kind or a property; None for other members."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    if not callable(function):
        return None
    return getattr(inspect.unwrap(function), "__code__", None)


def _names_in(code: types.CodeType) -> set[str]:
    """The global names and the attributes that a function and its inner functions read."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return set(code.co_names).union(*map(_names_in, inner))


def early_monitors(
    settings: Training, epochs: EpochLengths, callbacks: Mapping[str, Any]
) -> list[str]:
    """What is wrong with callbacks that look at a validation's metric before there is a validation.

    epochs: how many batches the training loader gives in them.
    callbacks: the section of a config.
    """
    steps = settings.steps_per_epoch(epochs.of_epoch(0))
    validate_every = length_of(settings, epochs).validate_every
    if validate_every <= steps:
        return []

    problems = []
    for name, node in callbacks.items():
        monitor = str(node.get("monitor"))
        needs_metric = node.get("check_on_train_epoch_end") and node.get("strict", True)
        if needs_metric and monitor.startswith("validation/"):
            problems.append(
                f"callbacks.{name}.check_on_train_epoch_end: {monitor} is not there when the first "
                f"epoch ends, after {steps} steps, because the first validation comes after "
                f"{validate_every}; give false, or choose a smaller training.validate_every"
            )
    return problems


def mlflow_loggers(loggers: Mapping[str, Any]) -> dict[str, str]:
    """{name: address} of Lightning's MLFlowLoggers among the loggers of a config."""
    addresses = {}
    for name, node in loggers.items():
        class_name = str(node.get("_target_")).rpartition(".")[2]
        if class_name == "MLFlowLogger":
            address = node.get("tracking_uri") or os.environ.get("MLFLOW_TRACKING_URI") or ""
            addresses[name] = str(address)
    return addresses


def _mlflow_problems(loggers: Mapping[str, Any]) -> list[str]:
    """Lightning's MLFlowLogger without an address writes into a folder, which MLflow 3 refuses."""
    problems = []
    for name, address in mlflow_loggers(loggers).items():
        scheme, is_address, _ = address.partition("://")
        if not is_address or scheme == "file":
            problems.append(
                f"loggers.{name}.tracking_uri must be the address of a server or a database, such "
                f"as http://localhost:5000 or sqlite:///mlflow.db, got {show(masked(address))}; "
                "attnlab itself logs to MLflow, too (tracking.uri)"
            )
    return problems
