"""What a run says of itself: to the person who starts it, and to the tracker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from attnlab.config.names import readable_name
from attnlab.config.paths import path_from
from attnlab.data.prepared import Prepared
from attnlab.experiment.config_sources import config_folders
from attnlab.experiment.hydra_job import command_line
from attnlab.model.model_folder import ShapesAlone
from attnlab.runs.mlflow_variables import environment_note
from attnlab.runs.run_folder import RunRecord
from attnlab.runs.shown_params import shown_params
from attnlab.runs.sweep_job import current_job
from attnlab.tasks.task import Experiment


def start_lines(experiment: Experiment, data: Prepared, folder: Path) -> list[str]:
    """What is about to be trained, on what, and where it goes."""
    # Built on the meta device, which costs no memory, to count its parameters.
    with torch.device("meta"), ShapesAlone():
        sizes = experiment.task.sizes(data)
        counts = parameters(experiment.model(**sizes, padding=experiment.padding))
    job = current_job()
    name = readable_name(experiment.logged, folders=config_folders())
    if job is not None:
        name = job.record.name
    total = sum(counts.values())
    parts = ", ".join(f"{part} {count:,}" for part, count in counts.items())
    rows = ", ".join(f"{count:,} {split}" for split, count in data.sizes.items())
    hardware = experiment.hardware
    processes = f"{hardware.devices} x {hardware.accelerator}"

    lines = [
        f"experiment {folder.name}: {name}",
        f"  model    {total:,} parameters: {parts}",
        f"  data     {rows} rows in {data.folder}",
        f"  device   {processes}, {hardware.threads} thread(s), precision {hardware.precision}",
        f"  folder   {folder}",
        f"  MLflow   {where_to_look(experiment)}",
    ]
    note = environment_note(experiment.config["tracking"])
    if note is not None:
        lines.append(note)
    return lines


def where_to_look(experiment: Experiment) -> str:
    """What a person types and opens to see the runs of MLflow, one or two lines."""
    return experiment.tracking.where_to_look(experiment.paths.runs_folder, experiment.task.view)


def parameters(model: torch.nn.Module) -> dict[str, int]:
    """How many numbers each part of a model learns, where it learns any."""
    counts = {}
    for name, part in model.named_children():
        count = sum(parameter.numel() for parameter in part.parameters())
        if count > 0:
            counts[name] = count
    return counts


def record_of(
    experiment: Experiment,
    config: dict[str, Any],
    identity: str,
    data: Prepared,
    name: str | None = None,
) -> RunRecord:
    """What the tracker is given of a run.

    In a sweep its name and some of its tags and params are the job's.
    """
    tags = {"repeatable": experiment.hardware.repeatable}
    folders = config_folders()
    title = readable_name(config, folders=folders)
    varied = {}
    job = current_job()
    if job is not None:
        tags |= job.tags
        name = title = job.record.name
        varied = job.record.choices

    task = experiment.task
    return RunRecord(
        config=config,
        identity=identity,
        data_digest=data.digest,
        data_source=path_from(experiment.paths.runs_folder, data.folder),
        data_facts=data.sizes,
        data_columns=task.rows.raw_columns,
        served=task.predictor().served,
        example=data.split("validation").source_text(0),
        tags=tags,
        name=name,
        command=command_line(),
        title=title,
        params=shown_params(config, folders, varied),
        main_metrics=experiment.main_metrics,
        view=task.view,
    )
