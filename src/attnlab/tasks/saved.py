"""The task of what lies on disk: of a model folder, and of an evaluation.

Folders of older versions do not name their task; their files tell it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch

from attnlab.config.binding import bind
from attnlab.config.identity import foreign_modules
from attnlab.config.params import short_params
from attnlab.errors import ExperimentError
from attnlab.evaluation.evaluation_files import TASK
from attnlab.evaluation.measures import Measure, Measures
from attnlab.evaluation.own_metrics import RecordedMetric
from attnlab.files import read_own_record
from attnlab.model.model_folder import bind_section, read_config, read_example, read_facts
from attnlab.tasks.classification.task import Classification
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.task import Task
from attnlab.tasks.translation.task import Translation

SHIPPED: tuple[Task, ...] = (Translation(), Classification())
"""The tasks of attnlab, the default one first."""


def task_of_model(folder: Path, allow: Collection[str] = ()) -> Task:
    """The task of a model folder.

    allow: modules outside of attnlab whose classes the folder may name.

    Raises ExperimentError where the folder is broken, or names a class that is not allowed.
    """
    facts = read_facts(folder)
    config = read_config(folder)
    if isinstance(config.get("task"), Mapping):
        task: Task[Any] = bind_section(config, "task", Task, allow)
        return task
    # An older folder
    return Classification() if "num_classes" in facts.sizes else Translation()


def shipped_task_of_model(folder: Path) -> Task | None:
    """The task of a model folder; None for a task of the user's own."""
    node = read_config(folder).get("task")
    if isinstance(node, Mapping) and node not in [task.node for task in SHIPPED]:
        return None
    return task_of_model(folder)


def task_of_predictor(predictor: Predictor) -> Task | None:
    """The task whose models a predictor asks; None where nothing says so."""
    for task in SHIPPED:
        if type(predictor) is task.predictor():
            return task
    node = None if predictor.config is None else predictor.config.get("task")
    # Its module was allowed, and imported, when the predictor was loaded.
    return bind(node, Task, "task") if isinstance(node, Mapping) else None


def task_of_evaluation(folder: Path, allow: Collection[str] = ()) -> Task:
    """The task that wrote an evaluation folder; arguments and errors as for `task_of_model`."""
    record = folder / TASK
    if record.is_file():
        config = read_own_record(record, dict[str, Any], "run the evaluate stage again")
        foreign = foreign_modules(config.get("task"), allow)
        if foreign:
            raise ExperimentError(
                f"the evaluation in {folder} is of a task of {', '.join(foreign)}; reading it "
                f"would run that code. Where you trust it, allow it: allow=[{','.join(foreign)}]"
            )
        task: Task[Any] = bind(config.get("task"), Task, "task")
        return task
    # An older folder
    for task in SHIPPED:
        if (folder / task.report_section().sentences_file).is_file():
            return task
    raise ExperimentError(f"{folder} is no evaluation; run the evaluate stage again")


def own_metrics_of(folder: Path) -> dict[str, RecordedMetric]:
    """The metrics that a config added to an evaluation, by name; none in older folders."""
    record = folder / TASK
    if not record.is_file():
        return {}
    content = read_own_record(record, dict[str, Any], "run the evaluate stage again")
    recorded = content.get("metrics", {})
    return {name: RecordedMetric.of_json(each) for name, each in recorded.items()}


def measure_named(name: str) -> Measure:
    """What the pages know of a measure of any task of ours."""
    known = [measure for task in SHIPPED for measure in task.report_section().measures]
    return Measures(known).named(name)


def load_predictor(folder: Path, device: str = "cpu", allow: Collection[str] = ()) -> Predictor:
    """What asks the model of a folder, such as a `Translator`.

    Arguments and errors as for `task_of_model`. Raises ExperimentError for a device that cannot be
    used, too.
    """
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ExperimentError(f"the device {device} cannot be used here: {reason}") from None
    predictor = task_of_model(folder, allow).predictor().load(folder, device, allow)
    predictor.example = read_example(folder)
    fault = short_params(read_config(folder)).get("fault")
    if fault is not None:
        print(
            f"warning: the model in {folder} was trained with fault={fault}, a mistake that was "
            "put into it on purpose (docs/museum.md)",
            file=sys.stderr,
        )
    return predictor
