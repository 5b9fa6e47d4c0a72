"""The task of translation with a fault in its training or in its evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.config.params import choice_name
from attnlab.config.part import Part
from attnlab.config.target import TARGET
from attnlab.data.prepared import PreparedData
from attnlab.errors import ExperimentError, show
from attnlab.faults.fault import Fault
from attnlab.model.model_folder import bind_section, read_config
from attnlab.model.seq2seq import Seq2Seq
from attnlab.progress import Progress
from attnlab.tasks.task import Experiment, Task
from attnlab.tasks.translation.task import Translation

if TYPE_CHECKING:
    import pytorch_lightning as pl

    from attnlab.tasks.translation.evaluation import Evaluation


class FaultyTranslation(Translation):
    """Translation whose training and evaluation have the fault that the model names.

    An experiment with a fault has it in the place of its task. The config names the task itself,
    for what reads a model folder or an evaluation finds there all that is right.
    """

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def with_own(self, sources: Iterable[str]) -> list[str]:
        """As of every task; the code of the fault decides an evaluation, too."""
        return [*super().with_own(sources), type(self.fault).__module__]

    def check(self, bound: Mapping[str, Any]) -> list[str]:
        problems = [*super().check(bound), *self.fault.problems(bound)]
        if bound["hardware"].graphs:
            problems.append(
                f"hardware.graphs records a right model's pass, but fault={self.fault.name} is "
                "chosen; choose hardware.graphs=false"
            )
        if bound["paths"].ensemble and self.fault.changes_evaluation:
            problems.append(
                f"fault={self.fault.name} is in the evaluation, of one model; choose "
                "paths.ensemble=null"
            )
        return problems

    def module(
        self, experiment: Experiment, model: Seq2Seq, data: PreparedData
    ) -> pl.LightningModule:
        module: Any = Translation.module(self, experiment, model, data)
        self.fault.change_training(module, data)
        return module

    def measure(
        self,
        experiment: Experiment,
        models: Sequence[Seq2Seq],
        data: PreparedData,
        progress: Progress,
    ) -> Evaluation:
        found = super().measure(experiment, models, data, progress)
        return self.fault.change_evaluation(found, models[0], data)


def check_task(task: Task[Any], model: Any) -> None:
    """Raise ExperimentError for a fault under another task, whose models the faults do not know.

    model: the node of the model in a config.
    """
    fault = model.get("fault") if isinstance(model, Mapping) else None
    if fault is None or type(task) is Translation:
        return
    raise ExperimentError(
        f"fault={choice_name(fault) or show(fault)} is a mistake of task=translation, but the "
        f"task is {task.name}; choose task=translation, or fault=none"
    )


def with_fault(task: Task[Any], model: Part[Any]) -> Task[Any]:
    """The task of an experiment, with the fault that its model has."""
    fault = model.values.get("fault")
    return FaultyTranslation(fault) if isinstance(fault, Fault) else task


def fault_of(folder: Path) -> Fault | None:
    """The fault of the model in a folder; None where it has none."""
    node = read_config(folder).get("model")
    of_fault = node.get("fault") if isinstance(node, Mapping) else None
    if not isinstance(of_fault, Mapping) or TARGET not in of_fault:
        return None
    fault = bind_section({"model.fault": of_fault}, "model.fault", Fault)
    assert isinstance(fault, Fault)
    return fault


def evaluated_with_fault(experiment: Experiment, folders: Sequence[Path]) -> Experiment:
    """The experiment that evaluates some model folders, with the fault of the first of them.

    Its own config says nothing of it: `evaluate.py` takes any model folder.

    Raises ExperimentError for several models of which one has a fault in its evaluation.
    """
    task = experiment.task
    if isinstance(task, FaultyTranslation):
        task = Translation()
    faults = [fault_of(folder) for folder in folders]
    for folder, fault in zip(folders, faults, strict=True):
        if fault is not None and fault.changes_evaluation and len(folders) > 1:
            raise ExperimentError(
                f"paths.ensemble: the model in {folder} has fault={fault.name}, which is in its "
                "evaluation; evaluate it alone"
            )
    first = faults[0]
    if first is not None and type(task) is Translation:
        task = FaultyTranslation(first)
    return replace(experiment, task=task)
