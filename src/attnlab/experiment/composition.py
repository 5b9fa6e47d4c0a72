"""From overrides to a checked experiment: `compose(["data=copy", "seed=2"])`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any

import torch
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field, PositiveFloat

from attnlab.batch import Padding
from attnlab.config.binding import bind, bind_sections
from attnlab.config.choices import conf_file
from attnlab.config.identity import foreign_modules
from attnlab.config.params import leaves, value_at
from attnlab.config.paths import Paths
from attnlab.config.target import TARGET
from attnlab.errors import ExperimentError, holds_password, masked
from attnlab.evaluation.corpus_metric import CorpusMetric
from attnlab.experiment.config_sources import config_folders
from attnlab.experiment.hydra_config import (
    check_choices_are_found_once,
    choices_of,
    compose_config,
    compose_in_command,
)
from attnlab.experiment.hydra_errors import hydra_error_sentence
from attnlab.faults.faulty_task import check_task, with_fault
from attnlab.files import resolve_path
from attnlab.model.model_folder import ShapesAlone
from attnlab.plots.picture import Picture
from attnlab.project import CONF
from attnlab.runs.mlflow_variables import with_environment
from attnlab.runs.sweep_settings import Launcher, Sweep
from attnlab.runs.tracking import Tracking
from attnlab.tasks.saved import SHIPPED, shipped_task_of_model
from attnlab.tasks.task import Experiment, Task
from attnlab.training.hardware import Hardware
from attnlab.training.trainer_section import trainer_problems

_ENVIRONMENT = re.compile(r"(?<!\\)\$\{oc\.(env|decode)\b")


def compose(overrides: Sequence[str] = (), folder: Path = CONF, name: str = "config") -> Experiment:
    """The experiment that these overrides compose; raises ExperimentError with every problem."""
    return check(compose_config(overrides, folder, name))


def check(config: DictConfig) -> Experiment:
    """Bind every section to its constructor and build the model on the meta device.

    Raises ExperimentError with all problems of the first stage that finds some: the sections by
    themselves, the sections together, what Lightning takes, the built model.
    """
    check_choices_are_found_once(config)
    values, written = _plain_and_written(config)
    _refuse_passwords(written)

    task: Task[Any] = bind(values.get("task"), Task, "task")
    check_task(task, values.get("model"))
    bound = _bound_sections(config, values, task)
    _settle_precision(bound, values, written)
    _refuse_environment_in_model(written)

    # A fault of the museum of mistakes may be in the training or in the evaluation.
    task = bound["task"] = with_fault(task, bound["model"])
    problems = [*task.check(bound), *_metric_problems(task, bound["metrics"])]
    problems += _trainer_problems(values)
    if problems:
        raise ExperimentError(problems)
    _check_extensions(bound, task)

    _check_size(bound, task)
    if foreign_modules(values["model"]):
        _try_model(task, bound)
    return Experiment(**bound, config=written, values=values, choices=choices_of(config))


def _refuse_passwords(written: Mapping[str, Any]) -> None:
    passwords = [place for place, value in leaves(written) if holds_password(value)]
    if passwords:
        raise ExperimentError(
            f"{', '.join(passwords)} holds a password, which would be written down with the "
            "config; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD (or "
            "MLFLOW_TRACKING_TOKEN) for MLflow's server, or write ${oc.env:NAME} for it"
        )


def _bound_sections(
    config: DictConfig, values: Mapping[str, Any], task: Task[Any]
) -> dict[str, Any]:
    """The sections by their names, each bound to its constructor.

    Raises ExperimentError with the problems of all of them, and with those of the trainer.
    """
    with_tracker = {**values, "tracking": with_environment(values.get("tracking"))}
    try:
        return bind_sections(with_tracker, sections_of(task))
    except ExperimentError as error:
        problems = []
        for problem in error.problems:
            with_origin = _with_origin(problem, choices_of(config), values)
            problems.append(_with_task(with_origin, task))
        raise ExperimentError([*problems, *_trainer_problems(values)]) from error


def _trainer_problems(values: Mapping[str, Any]) -> list[str]:
    trainer = values.get("trainer")
    return trainer_problems(trainer) if isinstance(trainer, dict) else []


def _settle_precision(bound: dict[str, Any], *sections: dict[str, Any]) -> None:
    """Put what `auto` means on this machine in its place, in the sections too.

    Those are hashed, written and logged.
    """
    if bound["hardware"].precision != "auto":
        return
    bound["hardware"] = bound["hardware"].with_precision()
    for each in sections:
        each["hardware"]["precision"] = bound["hardware"].precision


def _refuse_environment_in_model(written: Mapping[str, Any]) -> None:
    for name in ("model", "padding"):
        if "${oc." in json.dumps(written[name]):
            raise ExperimentError(
                f"{name} takes a value from an environment variable, without which its model "
                "folder could not be read; give the value itself"
            )


def _check_extensions(bound: Mapping[str, Any], task: Task[Any]) -> None:
    """Let Lightning look at what the config adds to it, where it adds something."""
    trainer, callbacks, loggers = bound["trainer"], bound["callbacks"], bound["loggers"]
    if not (trainer or callbacks or loggers):
        return
    # Imports Lightning, which takes seconds.
    from attnlab.training.extension_checks import check_extensions

    check_extensions(trainer, callbacks, loggers, task.monitored(bound))
    if problems := _silent_loggers(loggers):
        raise ExperimentError(problems)


def _check_size(bound: Mapping[str, Any], task: Task[Any]) -> None:
    """Build the model on the meta device, which costs no memory: sizes that do not fit show."""
    try:
        with torch.device("meta"), ShapesAlone():
            bound["model"](**task.trial_sizes, padding=bound["padding"])
    except (RuntimeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise ExperimentError(
            f"model is too large for this machine; make its sizes smaller ({reason})"
        ) from error


def _try_model(task: Task[Any], bound: Mapping[str, Any]) -> None:
    """Run a small batch through a model with parts of the user's own."""
    from attnlab.model.trial_pass import try_model

    padding = bound["padding"]
    try_model(
        build=lambda: bound["model"](**task.trial_sizes, padding=padding),
        loss_of=lambda model: task.trial_loss(model, padding),
        padding=padding,
    )


def _metric_problems(task: Task[Any], metrics: Mapping[str, CorpusMetric]) -> list[str]:
    """Problems with metrics of the user's: their names, and what their classes say."""
    if not metrics:
        return []  # what the pages know of a task is slow to import
    taken = {measure.name for measure in task.report_section().known.known}

    problems = []
    for name, metric in metrics.items():
        if name in taken:
            problems.append(
                f"metrics.{name}: task={task.name} has a metric of this name; choose another one"
            )
        problems += [f"metrics.{name}: {problem}" for problem in metric.problems()]
    return problems


def _silent_loggers(loggers: Mapping[str, Any]) -> list[str]:
    """Problems with the addresses of Lightning's MLFlowLoggers that nothing answers at.

    MLflow itself would try for minutes.
    """
    from attnlab.training.extension_checks import mlflow_loggers

    addresses = mlflow_loggers(loggers)
    if not addresses:
        return []
    # MLflow takes seconds to import.
    from sqlalchemy.exc import SQLAlchemyError

    from attnlab.runs.connection import check_reachable

    problems = []
    for name, address in addresses.items():
        try:
            check_reachable(address)
        except (OSError, ValueError, SQLAlchemyError) as error:
            problems.append(
                f"loggers.{name}.tracking_uri: nothing answers at {masked(address)} "
                f"({masked(str(error))}); start the server, "
                f"correct the address or leave loggers.{name} out"
            )
    return problems


def with_task_of_model(config: DictConfig) -> DictConfig:
    """The config, with the sections of the task of the model in `paths.model`.

    Nothing changes where another task than the default was chosen, or the model is of a task of the
    user's own.
    """
    folder = config.paths.model
    if not isinstance(folder, str) or config.task != SHIPPED[0].node:
        return config
    path = resolve_path(folder)
    if not (path / "model.json").is_file():
        return config  # what evaluates it says so
    task = shipped_task_of_model(path)
    if task is None or task.node == config.task:
        return config
    # Of its corpus nothing is read: the prepared data are there.
    other = compose_in_command([f"task={task.name}", *task.without_corpus], "config")
    OmegaConf.set_struct(config, False)
    config.update({name: other[name] for name in ("task", *task.sections)})
    return config


def sections_of(task: Task[Any]) -> dict[str, Any]:
    """What each section of the config must be under a task, as annotations."""
    return {
        "task": Task,
        **task.sections,
        "seed": Annotated[int, Field(ge=0, lt=2**32)],
        "padding": Padding,
        "tracking": Tracking,
        "hardware": Hardware,
        "trainer": dict[str, Any],
        "callbacks": _nodes_by_name("Callback"),
        "loggers": _nodes_by_name("Logger"),
        "metrics": dict[str, CorpusMetric],
        "pictures": dict[str, Picture],
        "paths": Paths,
        "sweep": Sweep,
        "launcher": Launcher,
        "save_every_minutes": PositiveFloat | None,
        "chain": bool,
        "rerun": bool,
        "dry_run": bool,
    }


def _nodes_by_name(kind: str) -> Any:
    """The annotation of a section that maps names to nodes for Lightning's classes.

    The classes themselves are checked later, since importing Lightning is slow.
    """
    node = Annotated[dict[str, Any], Field(description=f"a {kind} (a mapping with {TARGET})")]
    return Annotated[
        dict[str, node], Field(description=f"a mapping of names to {kind}s, {{}} for none")
    ]


def _with_task(problem: str, task: Task[Any]) -> str:
    """The problem, with a hint where a whole section may be of another task."""
    sections = "|".join(task.sections)
    if not re.match(rf"({sections})( must be|\._target_ is .* is not a subclass)", problem):
        return problem
    others = [f"task={each.name}" for each in SHIPPED if each.name != task.name]
    return f"{problem}; it may go with {' or '.join(others)} (here task={task.name})"


def _with_origin(problem: str, choices: Mapping[str, str], values: Mapping[str, Any]) -> str:
    """The problem, with a hint where a file wrote the unknown setting and the user did not."""
    unknown = re.match(r"([\w.]+)\.(\w+) is not a setting;", problem)
    if unknown is None:
        return problem
    place, setting = unknown.groups()
    origin = _of_former_class(place, setting, choices, values) or _of_preset(
        place, setting, choices
    )
    return f"{problem}; {origin}" if origin else problem


def _of_former_class(
    place: str, setting: str, choices: Mapping[str, str], values: Mapping[str, Any]
) -> str:
    """Where a setting is from whose node changed its class alone; empty if it is not of this kind.

    A preset or `model.attention._target_=...` that changes the class leaves the node with the
    settings of the choice that it had before.
    """
    group = place.replace(".", "/")
    choice = choices.get(group)
    if choice is None:
        return ""

    written = value_at(conf_file(group, choice, config_folders()).values, place)
    if not isinstance(written, Mapping) or setting not in written:
        return ""
    if written.get(TARGET) == value_at(values, f"{place}.{TARGET}"):
        return ""
    return (
        f"the file of {group}={choice} sets it, and it stays where {place}.{TARGET} "
        f"alone is changed: remove it with ~{place}.{setting}, or write a file for the class and "
        f"choose that, {group}=<its name>"
    )


def _of_preset(place: str, setting: str, choices: Mapping[str, str]) -> str:
    """The preset that writes a setting for the class of its own choice; empty where none does."""
    for group in ("debug", "experiment"):  # the former goes over the latter
        preset = choices.get(group)
        if preset is None:
            continue
        written = value_at(conf_file(group, preset, config_folders()).values, place)
        if isinstance(written, Mapping) and setting in written:
            return (
                f"{group}={preset} sets it, for another choice of {place.replace('.', '/')}: "
                f"remove it with ~{place}.{setting}"
            )
    return ""


def plain(config: DictConfig) -> dict[str, Any]:
    """The resolved config without Hydra's node, as plain containers whose keys are text.

    Raises ExperimentError where an interpolation leads nowhere.
    """
    return _resolved(_unresolved(config))


def _plain_and_written(config: DictConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """The config as by `plain`, and as it may be written or logged.

    There `${oc.env:NAME}` stands as it is, for an environment may hold secrets.
    """
    unresolved = _unresolved(config)
    values = _resolved(unresolved)
    escaped = _escaped(unresolved)
    # Resolving takes longer than everything else here, and few configs read the environment.
    written = deepcopy(values) if escaped == unresolved else _resolved(escaped)
    return values, written


def _unresolved(config: DictConfig) -> Any:
    """The config without Hydra's node, with its interpolations."""
    unresolved: Any = OmegaConf.to_container(config, resolve=False)
    unresolved.pop("hydra", None)
    return unresolved


def _resolved(unresolved: Any) -> dict[str, Any]:
    try:
        return _with_text_keys(OmegaConf.to_container(OmegaConf.create(unresolved), resolve=True))
    except (OmegaConfBaseException, ValueError) as error:
        raise ExperimentError(hydra_error_sentence(error)) from error


def _with_text_keys(node: Any) -> Any:
    """A plain config whose keys are all text.

    YAML reads the key `2015:` as a number and `on:` as a truth value.
    """
    if isinstance(node, list):
        return [_with_text_keys(value) for value in node]
    if not isinstance(node, dict):
        return node

    named: dict[str, Any] = {}
    for key, value in node.items():
        name = key if isinstance(key, str) else json.dumps(key, default=str)
        if name in named:
            raise ExperimentError(
                f"the key {name} stands in one mapping twice, as text and as {type(key).__name__}"
            )
        named[name] = _with_text_keys(value)
    return named


def _escaped(node: Any) -> Any:
    """A plain config whose texts from the environment are resolved to themselves."""
    if isinstance(node, dict):
        return {key: _escaped(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_escaped(value) for value in node]
    if isinstance(node, str):
        return _ENVIRONMENT.sub(r"\\\g<0>", node)
    return node
