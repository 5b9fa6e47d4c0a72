"""From overrides to a checked experiment: `compose(["data=copy", "seed=2"])`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field, PositiveFloat
from torch.overrides import TorchFunctionMode

from attnlab.batch import Padding
from attnlab.config.binding import bind_sections, class_named, component
from attnlab.config.paths import Paths
from attnlab.errors import ExperimentError, refuse_literal_passwords
from attnlab.experiment.classification import Classification
from attnlab.experiment.experiment import Experiment, Task
from attnlab.experiment.hydra_config import choices_of, compose_config
from attnlab.experiment.rewording import CONF, sentence
from attnlab.experiment.translation import Translation
from attnlab.files import check_writable
from attnlab.sweeps.settings import Launcher, Sweep
from attnlab.tracking.settings import Tracking
from attnlab.training.hardware import Hardware

TASKS: tuple[Task, ...] = (Translation(), Classification())
_ENVIRONMENT = re.compile(r"\$\{oc\.(env|decode)\b")


def compose(overrides: Sequence[str] = (), folder: Path = CONF, name: str = "config") -> Experiment:
    """The experiment that these overrides compose; raises ExperimentError with every problem."""
    return check(compose_config(overrides, folder, name))


def check(config: DictConfig) -> Experiment:
    """Bind every section to its constructor and try the model for size; raises ExperimentError with all problems."""

    values, written = plain(config), plain(config, keep_environment=True)
    refuse_literal_passwords(written)
    task = task_named(values.get("task"))
    try:
        bound = _bound(task, values)
    except ExperimentError as error:
        raise ExperimentError(_first_causes(error.problems, config)) from error
    if bound["hardware"].precision == "auto":
        bound["hardware"] = bound["hardware"].with_precision()
        for sections in (values, written):  # what is hashed, written and logged is what it means here
            sections["hardware"]["precision"] = bound["hardware"].precision
    for name in ("model", "padding"):
        if "${oc." in json.dumps(written[name]):
            raise ExperimentError(
                f"{name} takes a value from an environment variable; a model folder must be readable without it, so "
                f"give the value itself"
            )
    problems = task.check(bound)
    if problems:
        raise ExperimentError(problems)
    # Sizes that do not fit show when the model is built; on the meta device that costs no memory.
    try:
        with torch.device("meta"), _WithoutInitialValues():
            bound["model"](**task.trial_sizes, padding=bound["padding"])
    except (RuntimeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise ExperimentError(f"model is too large for this machine; make its sizes smaller ({reason})") from error
    check_writable("paths.runs", bound["paths"].runs_folder)
    return Experiment(**{**bound, "task": task}, config=written, values=values, choices=choices_of(config))


class _WithoutInitialValues(TorchFunctionMode):
    """Skips what fills and scales tensors: on the meta device that imports torch's compiler, which takes seconds."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        named = named or {}
        if function.__name__ in ("__truediv__", "constant_", "div", "kaiming_uniform_", "normal_", "uniform_"):
            return named["tensor"] if "tensor" in named else arguments[0]
        return function(*arguments, **named)


def task_named(name: Any) -> Task:
    """The task of a config; raises ExperimentError for an unknown one."""
    for task in TASKS:
        if task.name == name:
            return task
    raise ExperimentError(f"task must be one of {', '.join(task.name for task in TASKS)}; got {name!r}")


def sections_of(task: Task) -> dict[str, Any]:
    """What each section of the config must be under a task, as annotations."""

    return {
        "task": str,
        **task.sections(),
        "seed": Annotated[int, Field(ge=0, lt=2**32)],
        "padding": Padding,
        "tracking": Tracking,
        "hardware": Hardware,
        "paths": Paths,
        "sweep": Sweep,
        "launcher": Launcher,
        "save_every_minutes": PositiveFloat | None,
        "chain": bool,
        "rerun": bool,
    }


def _bound(task: Task, values: dict[str, Any]) -> dict[str, Any]:
    """The sections as objects; for one that belongs to another task, that is its only problem."""

    sections = sections_of(task)
    wrong = _of_other_tasks(task, values)
    if not wrong:
        return bind_sections(values, sections)
    others = [{key: value for key, value in part.items() if key not in wrong} for part in (values, sections)]
    problems = list(wrong.values())
    try:
        bind_sections(*others)
    except ExperimentError as error:
        problems += error.problems
    raise ExperimentError(problems)


def _of_other_tasks(task: Task, values: Mapping[str, Any]) -> dict[str, str]:
    """The sections that belong to another task than the chosen one, with a sentence for each."""
    problems = {}
    for other in TASKS:
        for section, kind in other.sections().items():
            if other.name != task.name and section in values and _is(values[section], kind):
                node = values[section]
                shown = "null" if node is None else f"a {node['_target_'].rpartition('.')[2]}"
                problems[section] = (
                    f"{section} is {shown}, which goes with task={other.name}; with task={task.name} choose "
                    f"{task.choices()[section]}"
                )
    return problems


def _is(node: Any, annotation: Any) -> bool:
    """Whether a node of the config names a class that the annotation allows, or is the null that it asks for."""

    kind = component(annotation)
    if kind is None:
        return node is None
    try:
        return isinstance(node, Mapping) and issubclass(class_named(node.get("_target_"), kind), kind)
    except ValueError:
        return False


def _first_causes(problems: list[str], config: DictConfig) -> list[str]:
    """The problems without those of settings that only refer, as `${hardware.threads}`, to one with a problem."""
    written: Any = OmegaConf.to_container(config, resolve=False)
    places = {problem.split(" ", 1)[0] for problem in problems}

    def referred(place: str) -> str | None:
        value = written
        for name in place.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        found = re.fullmatch(r"\$\{(\.*)([\w.]+)\}", value) if isinstance(value, str) else None
        if found is None:
            return None
        above = place.split(".")[: -len(found[1])] if found[1] else []  # one dot is a neighbour, a further one a level
        return ".".join([*above, found[2]])

    def is_repeated(place: str) -> bool:
        cause = referred(place)
        return cause is not None and (cause in places or is_repeated(cause))

    return [problem for problem in problems if not is_repeated(problem.split(" ", 1)[0])]


def plain(config: DictConfig, keep_environment: bool = False) -> dict[str, Any]:
    """The resolved config without Hydra's node, as plain containers.

    keep_environment: leave `${oc.env:NAME}` as it stands, for whatever is written or logged: an environment may hold
        secrets.

    Raises ExperimentError where an interpolation leads nowhere.
    """
    written: Any = OmegaConf.to_container(config, resolve=False)
    written.pop("hydra", None)
    texts: list[str] = []

    def marked(node: Any) -> Any:
        """The node with a mark in the place of each text from the environment, which references then lead to."""
        if isinstance(node, dict):
            return {key: marked(value) for key, value in node.items()}
        if isinstance(node, list):
            return [marked(value) for value in node]
        if isinstance(node, str) and _ENVIRONMENT.search(node):
            texts.append(node)
            return f"\0{len(texts) - 1}\0"
        return node

    def unmarked(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: unmarked(value) for key, value in node.items()}
        if isinstance(node, list):
            return [unmarked(value) for value in node]
        return re.sub("\0(\\d+)\0", lambda found: texts[int(found[1])], node) if isinstance(node, str) else node

    try:
        if keep_environment:
            return unmarked(OmegaConf.to_container(OmegaConf.create(marked(written)), resolve=True))
        return OmegaConf.to_container(OmegaConf.create(written), resolve=True)  # type: ignore[return-value]
    except (OmegaConfBaseException, ValueError) as error:
        raise ExperimentError(sentence(error)) from error
