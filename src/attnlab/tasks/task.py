"""An experiment: the sections of the config and their types.

It also tells which sections each stage depends on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import OmegaConf

from attnlab.config.identity import experiment_identity
from attnlab.errors import ExperimentError
from attnlab.progress import Progress
from attnlab.project import PIPELINES, pipeline_command

if TYPE_CHECKING:
    import pytorch_lightning as pl

    from attnlab.batch import Padding
    from attnlab.config.part import Part
    from attnlab.config.paths import Paths
    from attnlab.runs.pictures import Pictures
    from attnlab.runs.sweep_settings import Launcher, Sweep
    from attnlab.runs.tracking import Tracking
    from attnlab.training.hardware import Hardware

# Which sections decide the output of a stage. dvc.yaml says the same to DVC. The functions that
# make it stand beside them, as PREPARE_SOURCES, TRAIN_SOURCES, ...
PREPARE_SECTIONS = ("data",)
TRAIN_SECTIONS = ("seed", "padding", "model", "training", "hardware", "trainer", "callbacks")
EVALUATE_SECTIONS = ("search", "hardware")
# How jobs are chosen and spread. This changes neither the results of a job nor what it logs.
SWEEP_SECTIONS = ("sweep", "launcher")


Metrics = dict[str, float | int | None]


class Task(Protocol):
    """What differs between the kinds of experiment.

    The stages ask their task, and never which one it is.

    name: its choice in conf/task.
    columns: what a row of its raw data holds.
    shared_files: of its prepared data, what a model was trained with and keeps a copy of.
    source_side: of the statistics of its prepared data, what the encoder reads.
    trial_sizes: run-time sizes to try a model with before anything is prepared.
    sections: what `data`, `model`, `search` and `training` of the config must be, as annotations.
    """

    name: str
    columns: tuple[str, ...]
    shared_files: tuple[str, ...]
    source_side: str
    trial_sizes: Mapping[str, int]
    sections: Mapping[str, Any]

    def check(self, bound: Mapping[str, Any]) -> list[str]:
        """What is wrong with sections that are right each by itself."""
        return []

    def monitored(self, bound: Mapping[str, Any]) -> set[str]:
        """The names of the metrics that a callback can monitor.

        bound: the bound sections of a config.
        """

    def open_data(self, folder: Path) -> Any:
        """The prepared data of a folder.

        Raises ExperimentError where the folder has no data of this task.
        """
        is_ours = all((folder / name).is_file() for name in self.shared_files)
        if (folder / "data.json").is_file() and not is_ours:
            raise ExperimentError(
                f"paths.data: {folder} was prepared for another task than task={self.name}; choose "
                "that task, or give data of this one"
            )
        return self.read_data(folder)

    def check_same_tokens(self, model: Path, data: Path) -> None:
        """Check that the data have the tokenizers (and classes) of a model folder.

        Raises ExperimentError where they differ.
        """
        for name in self.shared_files:
            ours, theirs = model / name, data / name
            if (
                not ours.is_file()
                or not theirs.is_file()
                or ours.read_bytes() != theirs.read_bytes()
            ):
                raise ExperimentError(
                    f"paths.data: {data} was not prepared with the {name} of the model in {model}; "
                    "give the data that the model was trained on, or choose "
                    f"data/tokenizer=of_model data.tokenizer.folder={model}"
                )

    def read_data(self, folder: Path) -> Any:
        """Data that this task prepared."""

    def check_data(self, experiment: Experiment, data: Any) -> None:
        """Raise ExperimentError where the model could not read some sentence of the data."""
        from attnlab.model.attention.location import LocationScore

        attention = experiment.model.values["attention"]
        if attention is None or not issubclass(attention.target, LocationScore):
            return
        most = attention.values["max_length"]
        # The statistics do not count <eos>, which the score does.
        longest = {
            name: split[self.source_side]["max_length"] + 1
            for name, split in data.stats["splits"].items()
        }
        split = max(longest, key=lambda name: longest[name])
        if longest[split] > most:
            raise ExperimentError(
                f"model.attention.max_length is {most}, the tokens (`<eos>` included) of the "
                f"longest source that the location score reads, but the {split} split has a source "
                f"of {longest[split]}; raise it to {longest[split]}"
            )

    def sizes(self, data: Any) -> dict[str, int]:
        """The run-time sizes that the model takes from the data, by their names in `ModelFacts`."""

    def module(self, experiment: Experiment, model: Any, data: Any) -> pl.LightningModule:
        """What trains the model and validates it."""

    def pictures(self, experiment: Experiment, data: Any) -> Callable[[Any], Pictures | None]:
        """Given the module, what a validation draws of the same few sentences each time."""

    def evaluate(
        self, experiment: Experiment, model: Path, data: Any, into: Path, progress: Progress
    ) -> Metrics:
        """Write the evaluation of a model folder, whole or not at all.

        The caller sets the precision.
        """


@dataclass(frozen=True)
class Experiment:
    """A checked config.

    config: plain and resolved, but for environment variables, which stay as written: it may be
        written and logged.
    values: resolved throughout. It may hold secrets, and is only ever hashed.
    choices: {group: choice}; a config that was not composed here has none.
    seed: of the initial weights, the order of the batches, dropout and teacher forcing; the data
        have one of their own.
    data, model, search, training: of the kinds that the task's `sections` name.
    trainer: arguments of Lightning's Trainer that attnlab does not set itself.
    callbacks, loggers: nodes of more Lightning callbacks and loggers, by names of the user's.
    save_every_minutes: how long training runs at most without a checkpoint; None writes them at
        validations only.
    chain: whether `train.py` also prepares missing data, evaluates and reports; under DVC each of
        these is a stage.
    rerun: train again what is already trained.
    dry_run: train nothing, and print what it would cost.
    """

    config: dict[str, Any]
    values: dict[str, Any] = field(repr=False)
    choices: dict[str, str]
    seed: int
    task: Task
    data: Any
    padding: Padding
    model: Part[Any]
    search: Any
    training: Any
    tracking: Tracking
    hardware: Hardware
    trainer: dict[str, Any]
    callbacks: dict[str, Any]
    loggers: dict[str, Any]
    paths: Paths
    sweep: Sweep
    launcher: Launcher
    save_every_minutes: float | None
    chain: bool
    rerun: bool
    dry_run: bool

    @property
    def ensemble_folders(self) -> list[Path]:
        """The models that are evaluated beside the first."""
        return [resolve_path(folder) for folder in self.paths.ensemble or []]

    @property
    def initial_weights(self) -> Path | None:
        """The model folder that the training starts with."""
        folder = self.training.initial_weights
        return None if folder is None else resolve_path(folder)

    @property
    def logged(self) -> dict[str, Any]:
        """The sections that go to a tracker."""
        return {
            name: section for name, section in self.config.items() if name not in SWEEP_SECTIONS
        }

    def identity(self, names: tuple[str, ...], data: str, sources: tuple[str, ...]) -> str:
        """The identity that these sections, the state of the data and the sources determine.

        Another value of an environment variable gives another identity.
        """
        return experiment_identity(
            {name: self.values[name] for name in names}, data, self.sources(sources)
        )

    def sources(self, sources: tuple[str, ...]) -> list[str]:
        """The sources, with the module of this experiment's task for `task`."""
        return [source.replace("task:", f"{type(self.task).__module__}:") for source in sources]

    def use_hardware(self) -> None:
        """Set torch up; raises ExperimentError where this machine lacks the device."""
        self.hardware.check_available()
        self.hardware.apply()


def output_folder() -> Path:
    """Hydra's output folder of this job."""
    return Path(HydraConfig.get().runtime.output_dir)


def overrides() -> list[str]:
    """The overrides of this job as the command line gave them; empty outside of Hydra.

    `${oc.env:NAME}` stays as it is.
    """
    if not HydraConfig.initialized():
        return []
    return OmegaConf.to_container(HydraConfig.get().overrides.task, resolve=False)  # type: ignore[return-value]


def command_line() -> tuple[str, ...]:
    """The words of a command that repeats this job.

    Stages of DVC read what it composed, so for them the command is `dvc repro`.
    """
    if "DVC_STAGE" in os.environ:
        return "dvc", "repro"
    script, given = Path(sys.argv[0]).resolve(), sys.argv[1:]
    is_pipeline = script.parent == PIPELINES
    if not HydraConfig.initialized():
        if not is_pipeline:  # a program of the user's
            return "python", *sys.argv
        return *pipeline_command(script.stem).split(), *given

    mode, job = HydraConfig.get().mode, HydraConfig.get().job
    if mode == RunMode.MULTIRUN:  # this point alone
        given = overrides()
        if job.config_name != "config":
            given = ["-cn", str(job.config_name), *given]
    # A worker of Slurm is a script of submitit's; Hydra's job still has our script's name.
    name = script.stem if is_pipeline else job.name
    return *pipeline_command(name).split(), *given


def resolve_path(path: str) -> Path:
    """The absolute path of a path in the config, which counts from the current folder.

    For a job, that is the folder in which its command was started.
    """
    return Path(os.path.expanduser(path)).resolve()
