"""What differs between the kinds of experiment. The stages ask their task, and never which one it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytorch_lightning as pl

    from attnlab.experiment.experiment import Experiment
    from attnlab.report.page import Stages
    from attnlab.tracking.pictures import Pictures

Metrics = dict[str, float | int | None]
Tell = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


class Task(ABC):
    """One kind of experiment.

    name: its choice in conf/task.
    columns: what a row of its raw data holds.
    shared_files: of its prepared data, what a model was trained with and keeps a copy of.
    source_side: of the statistics of its prepared data, what the encoder reads.
    length_limit: the setting of `data.cleaning` that leaves out what is longer.
    trial_sizes: run-time sizes to try a model with before anything is prepared.
    """

    name: str
    columns: tuple[str, ...]
    shared_files: tuple[str, ...]
    source_side: str
    length_limit: str
    trial_sizes: Mapping[str, int]

    @abstractmethod
    def sections(self) -> dict[str, Any]:
        """What `data`, `model`, `search` and `training` of the config must be, as annotations."""

    @abstractmethod
    def choices(self) -> dict[str, str]:
        """For each of these sections the choices that go with the task, in words."""

    def check(self, bound: Mapping[str, Any]) -> list[str]:
        """What is wrong with sections that are right each by itself."""
        return []

    @abstractmethod
    def prepare(self, corpus: Any, folder: Path, tell: Tell) -> None:
        """Write the prepared data of a corpus."""

    def open_data(self, folder: Path) -> Any:
        """The prepared data of a folder; raises ExperimentError where there are none of this task."""
        from attnlab.errors import ExperimentError

        for other in _tasks():
            if other.name != self.name and other.has_files_in(folder) and not self.has_files_in(folder):
                raise ExperimentError(
                    f"paths.data: {folder} was prepared for task={other.name}, not for task={self.name}; choose that "
                    f"task, or give data of this one"
                )
        return self.read_data(folder)

    def has_files_in(self, folder: Path) -> bool:
        return all((folder / name).is_file() for name in self.shared_files)

    @abstractmethod
    def read_data(self, folder: Path) -> Any:
        """Data that this task prepared."""

    def check_data(self, experiment: Experiment, data: Any) -> None:
        """Raise ExperimentError where the model could not read some sentence of the data."""
        from attnlab.errors import ExperimentError
        from attnlab.model.attention.location import LocationScore

        attention = experiment.model.values["attention"]
        if attention is None or not issubclass(attention.target, LocationScore):
            return
        most = attention.values["max_length"]
        # The statistics do not count <eos>, which the score does.
        longest = {name: split[self.source_side]["max_length"] + 1 for name, split in data.stats["splits"].items()}
        split = max(longest, key=lambda name: longest[name])
        if longest[split] <= most:
            return
        remedy = f"raise it to {longest[split]}"
        if "cleaning" in experiment.config["data"] and most > 1:
            remedy += (
                f", or choose data.cleaning.{self.length_limit}={most - 1} with data.cleaning.limit_evaluation=true"
            )
        raise ExperimentError(
            f"model.attention.max_length is {most}, the tokens (`<eos>` included) of the longest source that the "
            f"location score reads, but the {split} split has a source of {longest[split]}; {remedy}"
        )

    @abstractmethod
    def sizes(self, data: Any) -> dict[str, int]:
        """The run-time sizes that the model takes from the data, by their names in `ModelFacts`."""

    @abstractmethod
    def module(self, experiment: Experiment, model: Any, data: Any) -> pl.LightningModule:
        """What trains the model and validates it."""

    @abstractmethod
    def pictures(self, experiment: Experiment, data: Any) -> Callable[[Any], Pictures | None]:
        """Given the module, what a validation draws of the same few sentences each time."""

    @abstractmethod
    def evaluate(
        self, experiment: Experiment, model: Path, data: Any, into: Path, half: Callable[[], Any] | None, tell: Tell
    ) -> Metrics:
        """Write the evaluation of a model folder, whole or not at all.

        half: a context in which the model's sums are of half precision, None for full precision.
        """

    @abstractmethod
    def report(self, config: Mapping[str, Any], choices: Mapping[str, str], stages: Stages, into: Path) -> None:
        """Write the page.

        choices: of each group, as they are shown.
        """


def task_named(name: Any) -> Task:
    """The task of a config; raises ExperimentError where there is none of that name."""
    from attnlab.errors import ExperimentError

    for task in _tasks():
        if task.name == name:
            return task
    raise ExperimentError(f"task must be one of {', '.join(task.name for task in _tasks())}; got {name!r}")


def mixed_up(task: Task, values: Mapping[str, Any]) -> dict[str, str]:
    """The sections that go with another task than the chosen one, with a sentence for each."""
    problems = {}
    for other in _tasks():
        for section, kind in other.sections().items():
            if other.name != task.name and section in values and _is(values[section], kind):
                problems[section] = (
                    f"{section} is {_shown(values[section])}, which goes with task={other.name}; with "
                    f"task={task.name} choose {task.choices()[section]}"
                )
    return problems


def _tasks() -> tuple[Task, ...]:
    from attnlab.experiment.classification import Classification
    from attnlab.experiment.translation import Translation

    return Translation(), Classification()


def _is(node: Any, annotation: Any) -> bool:
    """Whether a node of the config names a class that the annotation allows, or is the null that it asks for."""
    from attnlab.config.binding import class_named, component

    kind = component(annotation)
    if kind is None:
        return node is None
    try:
        return isinstance(node, Mapping) and issubclass(class_named(node.get("_target_"), kind), kind)
    except ValueError:
        return False


def _shown(node: Any) -> str:
    return "null" if node is None else f"a {node['_target_'].rpartition('.')[2]}"
