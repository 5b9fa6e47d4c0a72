"""The base class of tasks, and `Experiment`, a checked config of any task."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from attnlab.config.identity import experiment_identity
from attnlab.config.target import TARGET
from attnlab.errors import ExperimentError
from attnlab.files import resolve_path
from attnlab.progress import Progress
from attnlab.runs.shared_views import View

if TYPE_CHECKING:
    import pytorch_lightning as pl
    from torch import Tensor

    from attnlab.batch import Padding
    from attnlab.config.part import Part
    from attnlab.config.paths import Paths
    from attnlab.data.prepared import Prepared
    from attnlab.data.row_kinds import RowKind
    from attnlab.data.tokenizer import Tokenizer
    from attnlab.evaluation.corpus_metric import CorpusMetric
    from attnlab.plots.picture import Picture
    from attnlab.runs.pictures import Pictures
    from attnlab.runs.sweep_settings import Launcher, Sweep
    from attnlab.runs.tracking import Tracking
    from attnlab.tasks.predictor import ExplorerPage, Predictor
    from attnlab.tasks.report_section import ReportSection
    from attnlab.training.hardware import Hardware

# How jobs are chosen and spread. This changes neither the results of a job nor what it logs.
SWEEP_SECTIONS = ("sweep", "launcher")

DataT = TypeVar("DataT", bound="Prepared")
Metrics = dict[str, float | int | None]
Pictured = Callable[[Any], "Pictures | None"]
"""Takes a LightningModule and returns what draws the pictures of a validation; None for none.

They show the same few sentences each time.
"""


class Task(ABC, Generic[DataT]):
    """What differs between the kinds of experiments; a choice of conf/task by its `_target_`.

    All other code calls the methods of an experiment's task, and never asks which task it is.

    name: its choice in conf/task.
    sections: what `data`, `model`, `search` and `training` of the config must be, as annotations.
    rows: what becomes of a raw row when data are prepared.
    prepared: the prepared data, opened.
    trial_sizes: run-time sizes to try a model with before anything is prepared.
    without_corpus: overrides that compose its config where no corpus is read, since the data are
        prepared.
    """

    name: ClassVar[str]
    sections: ClassVar[Mapping[str, Any]]
    rows: ClassVar[type[RowKind]]
    prepared: type[DataT]
    trial_sizes: ClassVar[Mapping[str, int]]
    without_corpus: ClassVar[tuple[str, ...]] = ()

    @property
    def shared_files(self) -> tuple[str, ...]:
        """The names of the prepared files that a model folder keeps a copy of."""
        return (*self.prepared.tokenizer_files, "data.json")

    def shared_paths(self, prepared: Path) -> list[Path]:
        """The paths of the shared files in a folder of prepared data."""
        return [prepared / name for name in self.shared_files]

    @property
    def node(self) -> dict[str, str]:
        """The section `task` of a config that chooses this task."""
        return {TARGET: f"{type(self).__module__}.{type(self).__qualname__}"}

    def with_own(self, sources: Iterable[str]) -> list[str]:
        """The sources, where those of this task's attributes replace `task:<names>`."""
        found: list[str] = []
        for source in sources:
            place, _, names = source.partition(":")
            found += self._sources(names.split(",")) if place == "task" else [source]
        return found

    def _sources(self, names: Sequence[str]) -> list[str]:
        """The code behind these attributes of the task, as `experiment_identity` takes it.

        A method is that of the class that defines it; an attribute that is a class counts with its
        module.
        """
        found = []
        for name in names:
            value = getattr(type(self), name)
            if isinstance(value, type):
                found.append(value.__module__)
                continue
            owner = next(each for each in type(self).__mro__ if name in vars(each))
            found.append(f"{owner.__module__}:{name}")
        return found

    # What MLflow and sweeps show

    @property
    def main_metrics(self) -> tuple[str, ...]:
        """Names of the metrics that a person looks at first, the most important one first.

        They are the columns of a sweep's ranking and the result in a run's description. By default
        they are the headlines of the report, or else all its measures.
        """
        section = self.report_section()
        return section.headlines or tuple(measure.name for measure in section.measures)

    @property
    def view(self) -> View:
        """How the table and the charts of MLflow show the runs of this task."""
        metrics = tuple(f"test/{name}" for name in self.main_metrics)
        return View(self.name, f"Runs of {self.name.replace('_', ' ')}", metrics)

    # Checking a config

    def check(self, bound: Mapping[str, Any]) -> list[str]:
        """The problems between sections that are valid each by itself, as sentences.

        bound: the bound sections of a config.
        """
        return []

    def trial_loss(self, model: Any, padding: Padding) -> Tensor | None:
        """The loss of a small batch, by which a model with parts of the user's own is tried.

        By default None: nothing is tried.

        model: built with `trial_sizes`.
        """
        return None

    @abstractmethod
    def monitored(self, bound: Mapping[str, Any]) -> set[str]:
        """The names of the metrics that a callback can monitor."""

    # Prepared data

    def open_data(self, folder: Path) -> DataT:
        """The prepared data of a folder, checked to be of this task.

        Raises ExperimentError where the folder has no data of this task.
        """
        if self.prepared.is_other_kind(folder):
            raise ExperimentError(
                f"paths.data: {folder} was prepared for another task than task={self.name}; choose "
                "that task, or give data of this one"
            )
        return self.read_data(folder)

    def read_data(self, folder: Path) -> DataT:
        """The prepared data of a folder that is known to have data of this task."""
        return self.prepared(folder)

    def check_same_tokens(self, model: Path, data: Path) -> None:
        """Check that the data have the tokenizers (and classes) of a model folder.

        Raises ExperimentError where they differ.
        """
        for name in self.same_files:
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

    @property
    def same_files(self) -> tuple[str, ...]:
        """The files that a model and the data that it reads must share to the byte."""
        return self.shared_files

    def check_data(self, experiment: Experiment, data: DataT) -> None:
        """Raise ExperimentError where the model could not read some sentence of the data."""
        for section in ("attention", "encoder"):
            chosen = experiment.model.values.get(section)
            if chosen is None:
                continue
            for part in chosen.with_inner_parts():
                setting = getattr(part.target, "longest_source", None)
                if setting is not None and part.values[setting] is not None:
                    self._check_longest_source(part, setting, data)

    def warn_without_features(self, experiment: Experiment, tokenizer: Tokenizer) -> None:
        """Warn where the encoder has a part for features, and the source's vocabulary has none."""
        encoder = experiment.model.values.get("encoder")
        if encoder is None or not getattr(encoder.target, "reads_features", False):
            return
        if not tokenizer.feature_ids:
            print(
                f"warning: {encoder.path} has an encoder for features, but the source's vocabulary "
                "has none, such as <PL>; name columns in data.features, and take a data/tokenizer "
                "that keeps them whole, tagged_character or whitespace",
                file=sys.stderr,
            )

    def _check_longest_source(self, part: Part[Any], setting: str, data: DataT) -> None:
        """Raise ExperimentError where a source is longer than this setting of a part allows."""
        split, longest = longest_of(data, self.rows.source_side)
        most = part.values[setting]
        if longest > most:
            raise ExperimentError(
                f"{part.path}.{setting} is {most}, the tokens (`<eos>` included) of the longest "
                f"source that {part.target.__name__} reads, but the {split} split has a source of "
                f"{longest}; raise it to {longest}"
            )

    @abstractmethod
    def sizes(self, data: DataT) -> dict[str, int]:
        """The run-time arguments of the model that follow from the data, by name.

        Vocabulary sizes are among them.
        """

    # Training

    def read_vocabulary(self, model: Any, data: DataT) -> None:
        """Give a newly built model what it must know of the vocabulary; nothing by default."""

    @abstractmethod
    def module(self, experiment: Experiment, model: Any, data: DataT) -> pl.LightningModule:
        """The LightningModule that trains and validates a model.

        model: newly built, or with the weights that the training starts with.
        data: prepared, of the type `prepared`.
        """

    def pictures(self, experiment: Experiment, data: DataT) -> Pictured:
        """The function that draws the attention at a validation; by default it draws nothing."""
        return lambda module: None

    # A trained model

    @abstractmethod
    def evaluate(
        self, experiment: Experiment, model: Path, data: DataT, into: Path, progress: Progress
    ) -> Metrics:
        """Write the evaluation of a model folder into an empty folder, and return its metrics.

        It writes metrics.json, signatures.json and what its `report_section` reads. The caller sets
        the precision.
        """

    @abstractmethod
    def predictor(self) -> type[Predictor]:
        """The class of what `attnlab.load` returns for a model of this task."""

    def example(self, data: DataT) -> str:
        """A short text of the prepared data, which the model folder keeps; "" for none."""
        return ""

    def explorer_page(self, predictor: Any) -> ExplorerPage | None:
        """What the explorer shows of a trained model; None for a task without a page.

        predictor: of the class that `predictor` returns.
        """
        return None

    def report_section(self) -> ReportSection:
        """What the pages show of an evaluation; by default its metrics alone."""
        from attnlab.tasks.report_section import ReportSection  # imports matplotlib

        return ReportSection()


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
    metrics: more metrics of the evaluation, by names of the user's.
    pictures: more pictures of each validation's attention, by names of the user's.
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
    task: Task[Any]
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
    metrics: dict[str, CorpusMetric]
    pictures: dict[str, Picture]
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

    @property
    def main_metrics(self) -> tuple[str, ...]:
        """The metrics that a person looks at first: the task's, and those that the config adds."""
        of_task = self.task.main_metrics
        # Where the task names none, all are shown.
        return (*of_task, *self.metrics) if of_task else ()

    def identity(self, names: tuple[str, ...], data: str, sources: tuple[str, ...]) -> str:
        """The identity that these sections, the state of the data and the sources determine.

        Another value of an environment variable gives another identity.
        """
        return experiment_identity(
            {name: self.values[name] for name in names}, data, self.sources(sources)
        )

    def sources(self, sources: tuple[str, ...]) -> list[str]:
        """The sources, where those of the experiment's task replace `task:<names>`."""
        return self.task.with_own(sources)

    def use_hardware(self) -> None:
        """Set torch up; raises ExperimentError where this machine lacks the device."""
        self.hardware.check_available()
        self.hardware.apply()


def longest_of(data: Any, side: str) -> tuple[str, int]:
    """The split of prepared data with the longest sentence of a side, and that sentence's tokens.

    Counted is one more than the statistics count: the `<eos>` that an encoder reads, or the `<bos>`
    that a decoder reads.
    """
    longest = {name: split[side]["max_length"] + 1 for name, split in data.stats["splits"].items()}
    split = max(longest, key=lambda name: longest[name])
    return split, longest[split]
