"""Arguments of Lightning's Trainer that a config may give.

For each of the others, attnlab's own setting is named. The module does not import Lightning, which
takes seconds, so that a wrong argument is refused at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import NonNegativeInt

from attnlab.config.binding import bind_sections
from attnlab.config.target import TARGET
from attnlab.errors import ExperimentError, show

_LENGTH = (
    "a training ends at training.max_steps or training.max_epochs, and earlier by training.patience"
)
_LIMIT = "use training.limit_batches"
_EVALUATION = "Lightning's test loop is not used; use data.limit"
_HARDWARE = "use the settings of hardware"
_VALIDATION = "use training.validate_every"

# What attnlab sets itself: the same argument in a config would break what is promised of a run
# (that it resumes to the bit, is validated at its end and counts its steps), or would be overruled
# in silence. The value says what to use.
SET_BY_ATTNLAB: dict[str, str] = {
    "accelerator": "use hardware.accelerator",
    "accumulate_grad_batches": "use training.accumulate",
    "barebones": (
        "it leaves out checkpoints and metrics; use debug=profile to see what a step takes"
    ),
    "callbacks": "use callbacks, +callbacks.<name>._target_=...",
    "check_val_every_n_epoch": _VALIDATION,
    "default_root_dir": "use paths.runs",
    "devices": "use hardware.devices",
    "enable_checkpointing": (
        "without checkpoints there is no model; use training.keep_best and save_every_minutes"
    ),
    "enable_progress_bar": "attnlab shows a bar of its own, at a terminal alone",
    "fast_dev_run": "use debug=one_step",
    "gradient_clip_algorithm": "training.gradient_clip clips by the norm",
    "gradient_clip_val": "use training.gradient_clip",
    "limit_predict_batches": _EVALUATION,
    "limit_test_batches": _EVALUATION,
    "limit_train_batches": _LIMIT,
    "limit_val_batches": _LIMIT,
    "log_every_n_steps": "use training.log_every",
    "logger": "use loggers, +loggers.<name>._target_=...",
    "max_epochs": "use training.max_epochs",
    "max_steps": "use training.max_steps",
    "max_time": "use training.max_minutes",
    "min_epochs": _LENGTH,
    "min_steps": _LENGTH,
    "model_registry": "use tracking.log_model",
    "num_nodes": "use hardware.nodes",
    "overfit_batches": "use debug=overfit",
    "plugins": (
        "attnlab has its own for checkpoints, hardware.precision and hardware=slurm choose the "
        "others"
    ),
    "precision": "use hardware.precision",
    "reload_dataloaders_every_n_epochs": "training.batching makes the batches of each epoch",
    "strategy": "use hardware.strategy",
    "use_distributed_sampler": "training.batching gives each process its share of every batch",
    "val_check_interval": _VALIDATION,
}

# What is passed on, as annotations.
PASSED_ON: dict[str, Any] = {
    "benchmark": bool | None,
    "detect_anomaly": bool,
    "deterministic": bool | Literal["warn"] | None,
    "enable_autolog_hparams": bool,
    "enable_model_summary": bool,
    "inference_mode": bool,
    "num_sanity_val_steps": NonNegativeInt,
    "profiler": Literal["simple", "advanced", "pytorch"] | None,  # or a node of a class of its own
    "sync_batchnorm": bool,
}


def trainer_problems(section: Mapping[str, Any]) -> list[str]:
    """What is wrong with the section `trainer` of a config, a sentence each."""
    problems = []
    passed_on = {}
    for name, value in section.items():
        refusal = refusal_of(name)
        if not refusal:
            passed_on[name] = value
        elif name in SET_BY_ATTNLAB:
            problems.append(f"{refusal}; got {show(value)}")
        else:
            problems.append(refusal)

    try:
        trainer_arguments(passed_on)
    except ExperimentError as error:
        problems += error.problems
    return problems


def trainer_arguments(section: Mapping[str, Any], folder: Path | None = None) -> dict[str, Any]:
    """The arguments for Lightning's Trainer; a profiler with a `_target_` is built.

    folder: for the file of a profiler that has a filename and no dirpath; Lightning would write
        none.

    Raises ExperimentError with every value that is wrong.
    """
    given = {}
    annotations = {}
    for name, value in section.items():
        place = f"trainer.{name}"
        given[place] = value
        annotations[place] = PASSED_ON[name]
        if name == "profiler" and isinstance(value, Mapping):
            annotations[place] = _profiler_class()
            if folder is not None and "filename" in value:
                given[place] = {"dirpath": str(folder), **value}

    bound = bind_sections(given, annotations)
    return {place.removeprefix("trainer."): value for place, value in bound.items()}


def _profiler_class() -> type:
    """Lightning's base class of profilers, imported at its first use."""
    from pytorch_lightning.profilers import Profiler

    return Profiler


def refusal_of(name: str) -> str:
    """Why a config may not give this argument, and what to use; empty for one that is passed on."""
    if name in PASSED_ON:
        return ""
    if name == TARGET:
        return f"trainer.{TARGET}: attnlab builds Lightning's Trainer itself; leave it out"
    if name in SET_BY_ATTNLAB:
        return f"trainer.{name} is set by attnlab: {SET_BY_ATTNLAB[name]}"
    close = difflib.get_close_matches(name, [*PASSED_ON, *SET_BY_ATTNLAB], n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return (
        f"trainer.{name} is not a setting; {hint}trainer takes, of Lightning's Trainer: "
        f"{', '.join(PASSED_ON)}"
    )
