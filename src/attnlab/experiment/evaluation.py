"""The stage `pipelines/evaluate.py`: a trained model on the test split -> metrics, hypotheses and
attention.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from attnlab.config.identity import config_digest, target_modules
from attnlab.config.names import readable_name
from attnlab.config.params import as_text, choice_name
from attnlab.config.paths import EVALUATION, check_replaceable, path_from
from attnlab.errors import ExperimentError
from attnlab.experiment.experiment import (
    EVALUATE_SECTIONS,
    EVALUATE_SOURCES,
    TRAIN_SECTIONS,
    Experiment,
    Metrics,
    command_line,
    here,
    output_folder,
)
from attnlab.experiment.hydra_config import changed_values
from attnlab.experiment.launch import log, say
from attnlab.experiment.point import only_one_at_a_time
from attnlab.files import atomic_folder
from attnlab.model.model_folder import read_config, read_facts
from attnlab.progress import progress_bars
from attnlab.runs.mlflow_variables import said_by_environment
from attnlab.runs.run_folder import RunRecord
from attnlab.runs.sweep_job import current_job

LONGEST_ENSEMBLE = 200  # characters of the names of its models; MLflow takes 250 with the search


def evaluate(experiment: Experiment, model_folder: Path, data_folder: Path, into: Path) -> Metrics:
    """Write the evaluation folder, whole or not at all, and return its metrics."""
    data = experiment.task.open_data(data_folder)
    hardware = experiment.hardware
    half = (
        torch.autocast(hardware.device, torch.bfloat16)
        if hardware.precision == "bf16"
        else nullcontext()
    )
    with progress_bars() as progress, half:
        return experiment.task.evaluate(experiment, model_folder, data, into, progress)


def kept_evaluation(experiment: Experiment, data: Any, point: Path) -> Path:
    """Where the evaluation of a point's model stays, so that the same is not evaluated twice."""
    others = [read_facts(folder).identity for folder in experiment.ensemble_folders]
    their_code = target_modules([read_config(folder) for folder in experiment.ensemble_folders])
    sources = (*EVALUATE_SOURCES, *their_code)
    identity = experiment.identity(EVALUATE_SECTIONS, "\n".join([data.digest, *others]), sources)
    return point / "evaluated" / identity


def state_of_its_run(experiment: Experiment, model_folder: Path) -> Path:
    """The state folder of the run that this evaluation goes to: the training's, or one of the
    evaluation's own.
    """
    point = experiment.paths.runs_folder / "points" / read_facts(model_folder).identity
    measured_with = {
        "search": experiment.config["search"],
        **_other_precision(experiment, model_folder),
    }
    others = experiment.ensemble_folders
    if others:
        measured_with["ensemble"] = [read_facts(folder).identity for folder in others]
    if measured_with == {"search": read_config(model_folder).get("search")}:
        return point
    # Another search or precision is another run: a run's params say what its metrics were measured
    # with.
    return point / "evaluations" / config_digest(measured_with)[:16]


def _other_precision(experiment: Experiment, model_folder: Path) -> dict[str, Any]:
    """{"precision": ...} where it is not the one that the model was trained in."""
    own, trained = (
        experiment.hardware.precision,
        read_config(model_folder).get("hardware", {}).get("precision"),
    )
    return {} if own == trained else {"precision": own}


def config_of_run(experiment: Experiment, model_folder: Path) -> dict[str, Any]:
    """The config for the tracker: the model's own sections, and the search and hardware of this
    command.

    The command's other sections say nothing of the model: `evaluate.py` takes any model folder.
    """
    of_model = [name for name in ("data", *TRAIN_SECTIONS) if name not in EVALUATE_SECTIONS]
    own = read_config(model_folder)
    return {
        **{name: section for name, section in experiment.logged.items() if name not in of_model},
        **{name: own[name] for name in of_model if name in own},
    }


def name_of_run(experiment: Experiment, model_folder: Path) -> str:
    """The name of a run of the evaluation's own: `dot · dates · seed 1 · beam size=10`.

    It has the models, the search, the settings that differ from the search's file, and another
    precision.
    """
    configs = [read_config(folder) for folder in (model_folder, *experiment.ensemble_folders)]
    # The search that a model was trained beside is not the one that it is evaluated with.
    names = [
        readable_name({key: value for key, value in config.items() if key != "search"})
        for config in configs
    ]
    models = " + ".join(names)
    if len(models) > LONGEST_ENSEMBLE:
        models = f"{names[0]} + {len(names) - 1} more ({config_digest({'names': names})[:4]})"
    parts = [models]
    if (search := experiment.config["search"]) is not None:
        name = choice_name(search) or "search"
        settings = [
            f"{key}={as_text(value)}"
            for key, value in changed_values("search", name, search).items()
        ]
        parts.append(" ".join([name, *settings]))
    parts += [
        f"precision {precision}"
        for precision in _other_precision(experiment, model_folder).values()
    ]
    return " · ".join(parts)[:250]  # MLflow's limit


def evaluate_and_track(
    experiment: Experiment,
    model: Path,
    data: Path,
    into: Path,
    kept: Path | None = None,
    begun: bool = False,
    more: Callable[[], Mapping[str, float]] = dict,
) -> None:
    """Evaluate, log what was found to the run that trained the model (or to one of its own, where
    the search is
    another or the model is one of several), and print it.

    kept: where the evaluation lies when it was made before, and stays when it is made now.
    begun: whether the tracker was there when this process began; going away since, it stops
        nothing.
    more: metrics that are known when the model is evaluated.
    """
    check_replaceable("paths.evaluation", into, EVALUATION)
    facts = read_facts(model)
    state = state_of_its_run(experiment, model)
    state.mkdir(parents=True, exist_ok=True)
    own_name = None if state.name == facts.identity else name_of_run(experiment, model)
    opened, job = experiment.task.open_data(data), current_job()
    experiment.task.check_same_tokens(model, data)  # before MLflow has a run of it
    record = record_of(
        experiment, config_of_run(experiment, model), facts.identity, opened, own_name
    )
    tracking = experiment.tracking.of_a_begun_run() if begun else experiment.tracking
    is_kept = kept is not None and (kept / "metrics.json").is_file()
    with (
        only_one_at_a_time(state),
        tracking.start(experiment.paths.runs_folder, state, record, is_kept) as run,
    ):
        if job is not None and run.run_id is not None:
            job.update(run_id=run.run_id)
        if kept is None:
            evaluate(experiment, model, data, into)
        else:
            if not is_kept:
                evaluate(experiment, model, data, kept)
            with atomic_folder(into) as temporary:
                shutil.copytree(kept, temporary, dirs_exist_ok=True)
        metrics = json.loads((into / "metrics.json").read_text(encoding="utf-8"))
        measured = {f"test/{name}": value for name, value in metrics.items() if value is not None}
        run.log_metrics({**measured, **more()}, facts.step)
        run.log_artifact(into)
    print_metrics(metrics)
    shown = (f"{name} {value:.6g}" for name, value in sorted(metrics.items()) if value is not None)
    log.info("test split: %s; all of it in %s", " · ".join(shown), into)


def record_of(
    experiment: Experiment,
    config: dict[str, Any],
    identity: str,
    data: Any,
    name: str | None = None,
) -> RunRecord:
    """What the tracker is given of a run; in a sweep its name and some of its tags are the
    job's.
    """
    job = current_job()
    tags = {"repeatable": experiment.hardware.repeatable}
    return RunRecord(
        config=config,
        identity=identity,
        data_digest=data.digest,
        data_source=path_from(experiment.paths.runs_folder, data.folder),
        data_facts=data.sizes,
        data_columns=experiment.task.columns,
        tags=tags if job is None else {**tags, **job.tags},
        name=name if job is None else job.record.name,
        command=command_line(),
    )


def print_metrics(metrics: Metrics) -> None:
    table = Table("metric", "test split", title="Results")
    for name, value in sorted(metrics.items()):
        table.add_row(
            name,
            "–" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value),
        )
    Console().print(table)


def main(experiment: Experiment) -> None:
    experiment.use_hardware()
    paths = experiment.paths
    if paths.model is None or paths.data is None:
        raise ExperimentError(
            "paths.model and paths.data must name a model folder and the prepared data; give both"
        )
    if line := said_by_environment(experiment.config["tracking"]):
        say(line)
    experiment.tracking.follow_moved_folder(paths.runs_folder)
    into = output_folder() / "evaluation" if paths.evaluation is None else here(paths.evaluation)
    evaluate_and_track(experiment, here(paths.model), here(paths.data), into)
    say(
        f"metrics: {into / 'metrics.json'}\nMLflow:  "
        f"{experiment.tracking.where_to_look(paths.runs_folder)}"
    )
