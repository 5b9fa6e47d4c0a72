"""Evaluation of an experiment: a trained model on the test split, once for each search."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from attnlab.config.choices import choice_of
from attnlab.config.identity import config_digest, foreign_modules, target_modules
from attnlab.config.names import readable_name
from attnlab.config.params import as_text, choice_name
from attnlab.config.paths import EVALUATION, check_replaceable
from attnlab.config.target import TARGET
from attnlab.data.prepared import Prepared
from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import load_maps
from attnlab.evaluation.evaluation_files import (
    ATTENTION,
    METRICS,
    SIGNATURES,
    TASK,
    read_json,
    read_lines,
)
from attnlab.evaluation.measures import Measures
from attnlab.evaluation.own_metrics import RecordedMetric, measured
from attnlab.experiment.config_sources import config_folders
from attnlab.experiment.hydra_config import changed_values
from attnlab.experiment.hydra_job import output_folder
from attnlab.experiment.point import experiment_lock
from attnlab.experiment.run import ExperimentRun, other_precision, run_folder_of_evaluation
from attnlab.experiment.run_record import record_of
from attnlab.experiment.sections import EVALUATE_SECTIONS, TRAIN_SECTIONS
from attnlab.faults.faulty_task import evaluated_with_fault
from attnlab.files import atomic_file, atomic_folder, resolve_path, write_json
from attnlab.model.model_folder import read_config, read_facts
from attnlab.progress import progress_bars
from attnlab.runs.mlflow_variables import environment_note
from attnlab.runs.run import Run
from attnlab.runs.run_folder import HEAT_MAPS, RunRecord
from attnlab.runs.sweep_job import current_job
from attnlab.tasks.task import Experiment, Metrics
from attnlab.terminal import echo, log

# What makes an evaluation: its identity, and DVC's, follows from this code.
EVALUATE_SOURCES = (
    f"{__name__}:write_evaluation",
    "task:evaluate,read_data,prepared",
    "attnlab.runs.pictures",
)
LONGEST_ENSEMBLE = 200  # characters of the names of its models; MLflow takes 250 with the search


def evaluate(experiment: Experiment, data: Prepared, run: ExperimentRun) -> Path:
    """Evaluate the model of a run, unless that was done before, and show its metrics.

    Returns the folder of the evaluation. Hydra's output folder gets a copy of it, and MLflow the
    metrics.
    """
    output = output_folder()
    cached = cached_evaluation(experiment, data, run.folder)

    def duration() -> dict[str, float]:
        return {} if run.began is None else {"time/minutes": (time.time() - run.began) / 60}

    evaluate_and_track(
        experiment,
        model=run.folder / "model",
        data_folder=data.folder,
        into=output / "evaluation",
        cached=cached,
        # Training has reached the tracker: if it is unreachable by now, only warn.
        tracker_was_there=True,
        more=duration,
    )
    with atomic_file(output / METRICS) as path:
        shutil.copyfile(output / "evaluation" / METRICS, path)
    return cached


def evaluate_model_folder(experiment: Experiment) -> Path:
    """Evaluate the model of `paths.model` on the data of `paths.data`; returns the folder."""
    experiment.use_hardware()
    paths = experiment.paths
    if paths.model is None or paths.data is None:
        raise ExperimentError(
            "paths.model and paths.data must name a model folder and the prepared data; give both"
        )
    folders = [resolve_path(paths.model), *experiment.ensemble_folders]
    for folder in folders:
        _check_own_code(experiment, folder)
    experiment = evaluated_with_fault(experiment, folders)
    line = environment_note(experiment.config["tracking"])
    if line:
        echo(line)
    experiment.tracking.follow_moved_folder(paths.runs_folder)

    into = output_folder() / "evaluation"
    if paths.evaluation is not None:
        into = resolve_path(paths.evaluation)
    model, data = resolve_path(paths.model), resolve_path(paths.data)
    evaluate_and_track(experiment, model, data, into)
    return into


def _check_own_code(experiment: Experiment, model_folder: Path) -> None:
    """Raise ExperimentError where a model has parts of modules that the command does not name."""
    read_facts(model_folder)  # it is a model folder
    config = read_config(model_folder)
    sections = {name: config.get(name) for name in ("task", "model")}
    foreign = foreign_modules(sections, allow=set(target_modules(experiment.config)))
    if foreign:
        choices = " ".join(_own_choices(sections, foreign))
        raise ExperimentError(
            f"loading the model in {model_folder} would run code of {', '.join(foreign)}. Where "
            f"you trust it, repeat the choices that the model was trained with: {choices}"
        )


def _own_choices(sections: Mapping[str, Any], modules: Collection[str]) -> Iterator[str]:
    """The choices of a model whose classes are of these modules, as one types them."""
    nodes = dict(sections)
    model = sections["model"]
    if isinstance(model, Mapping):
        nodes |= {f"model/{name}": part for name, part in model.items()}
        for name, part in model.items():
            inner = part if isinstance(part, Mapping) else {}
            nodes |= {f"model/{name}@model.{name}.{key}": node for key, node in inner.items()}

    for group, node in nodes.items():
        target = node.get(TARGET) if isinstance(node, Mapping) else None
        if not isinstance(target, str) or target.rpartition(".")[0] not in modules:
            continue
        choice = choice_of(group.partition("@")[0], node, folders=config_folders())
        if choice is None:
            yield f"{group}=<the choice of {target}, by hydra.searchpath or --config-dir>"
        else:
            yield f"{group}={choice}"


def write_evaluation(
    experiment: Experiment, model_folder: Path, data_folder: Path, into: Path
) -> Metrics:
    """Write the evaluation folder, whole or not at all, and return its metrics."""
    data = experiment.task.open_data(data_folder)
    hardware = experiment.hardware
    precision: Any = nullcontext()
    if hardware.precision == "bf16":
        precision = torch.autocast(hardware.device, torch.bfloat16)
    with atomic_folder(into) as folder, progress_bars() as progress, precision:
        metrics = experiment.task.evaluate(experiment, model_folder, data, folder, progress)
        return {**metrics, **_write_own(experiment, folder)}


def _write_own(experiment: Experiment, folder: Path) -> dict[str, float]:
    """Measure the metrics that the config adds, and record what wrote the evaluation."""
    nodes = experiment.config["metrics"]
    recorded = {}
    for name, metric in experiment.metrics.items():
        recorded[name] = RecordedMetric(metric.measure(name), nodes[name]).as_json()
    write_json(folder / TASK, {"task": experiment.config["task"], "metrics": recorded})
    if not experiment.metrics:
        return {}

    # Imported here, since the section draws figures, and matplotlib takes a second.
    sentences = folder / experiment.task.report_section().sentences_file
    found = measured(experiment.metrics, read_lines(sentences))
    metrics = read_json(folder / METRICS, "evaluate")
    signatures = read_json(folder / SIGNATURES, "evaluate")
    for name, metric in experiment.metrics.items():
        metrics[name] = found[name]
        signatures[name] = metric.signature
    write_json(folder / METRICS, metrics)
    write_json(folder / SIGNATURES, signatures)
    return found


def cached_evaluation(experiment: Experiment, data: Prepared, point: Path) -> Path:
    """Where the evaluation of a point's model stays, so that the same is not evaluated twice."""
    folders = experiment.ensemble_folders
    others = [read_facts(folder).identity for folder in folders]
    their_code = target_modules([read_config(folder) for folder in folders])
    sources = (*EVALUATE_SOURCES, *their_code)
    identity = experiment.identity(EVALUATE_SECTIONS, "\n".join([data.digest, *others]), sources)
    return point / "evaluated" / identity


def evaluate_and_track(
    experiment: Experiment,
    model: Path,
    data_folder: Path,
    into: Path,
    cached: Path | None = None,
    tracker_was_there: bool = False,
    more: Callable[[], Mapping[str, float]] | None = None,
) -> None:
    """Evaluate, log what was found, and print it.

    It goes to the run that trained the model, or to one of its own, where the search is another or
    the model is one of several.

    cached: where the evaluation lies when it was made before, and stays when it is made now.
    tracker_was_there: when this process began; if it is unreachable by now, that is a warning.
    more: metrics that are known when the model is evaluated.
    """
    check_replaceable("paths.evaluation", into, EVALUATION)
    run_folder = run_folder_of_evaluation(experiment, model)
    run_folder.mkdir(parents=True, exist_ok=True)
    data = experiment.task.open_data(data_folder)
    experiment.task.check_same_tokens(model, data_folder)  # before MLflow has a run of it

    record = _record_of_run(experiment, model, data, run_folder)
    tracking, job = experiment.tracking, current_job()
    if tracker_was_there:
        tracking = tracking.that_only_warns()
    runs_folder = experiment.paths.runs_folder
    with ExitStack() as closing:
        closing.enter_context(experiment_lock(run_folder))
        # Another process may have made it meanwhile.
        is_cached = cached is not None and (cached / METRICS).is_file()
        started = tracking.start(runs_folder, run_folder, record, is_cached)
        run = closing.enter_context(started)
        if job is not None and run.run_id is not None:
            job.update(run_id=run.run_id)
        if cached is None:
            write_evaluation(experiment, model, data_folder, into)
        else:
            if not is_cached:
                write_evaluation(experiment, model, data_folder, cached)
            with atomic_folder(into) as temporary:
                shutil.copytree(cached, temporary, dirs_exist_ok=True)
        metrics = json.loads((into / METRICS).read_text(encoding="utf-8"))
        others = {} if more is None else more()
        _log_evaluation(run, into, metrics, others, read_facts(model).step)
        _log_heat_maps(run, into, tracking.heat_map_sentences)
    print_metrics(metrics, experiment)
    shown = [f"{name} {value:.6g}" for name, value in sorted(metrics.items()) if value is not None]
    log.info("test split: %s; all of it in %s", " · ".join(shown), into)


def _record_of_run(
    experiment: Experiment, model: Path, data: Prepared, run_folder: Path
) -> RunRecord:
    """The record of the run that an evaluation goes to."""
    identity = read_facts(model).identity
    is_of_training = run_folder.name == identity
    name = None if is_of_training else name_of_run(experiment, model)
    return record_of(experiment, config_of_run(experiment, model), identity, data, name)


def _log_evaluation(
    run: Run, evaluation: Path, metrics: Metrics, others: Mapping[str, float], step: int
) -> None:
    """Log the metrics at the step of the model's weights, and the files.

    others: metrics beside those of the test split.
    """
    measured = {f"test/{name}": value for name, value in metrics.items() if value is not None}
    run.log_metrics({**measured, **others}, step)
    run.log_artifact(evaluation)


def _log_heat_maps(run: Run, evaluation: Path, count: int) -> None:
    """Log up to `count` pictures of the attention."""
    made_at = (evaluation / METRICS).stat().st_mtime
    run.log_images(
        f"test/{HEAT_MAPS}", made_at, lambda folder: _write_images(evaluation, folder, count)
    )


def _write_images(evaluation: Path, folder: Path, count: int) -> None:
    """Write up to `count` pictures of an evaluation's attention, as a validation draws them.

    They are the evaluation's own, where it has some.
    """
    drawn = sorted(evaluation.glob("*.png"))
    for path in drawn[:count]:
        shutil.copyfile(path, folder / path.name)
    maps = evaluation / ATTENTION
    if drawn or not maps.is_file():
        return

    # matplotlib takes a second.
    from attnlab.plots.figure import save_png
    from attnlab.plots.heat_map_figure import heat_map_figure

    for number, attention in enumerate(load_maps(maps)[:count], start=1):
        save_png(heat_map_figure(attention), folder / f"sentence_{number}.png")


def config_of_run(experiment: Experiment, model_folder: Path) -> dict[str, Any]:
    """The config for the tracker: the model's own sections, and the command's search and hardware.

    The command's other sections say nothing of the model: `evaluate.py` takes any model folder.
    """
    of_model = [name for name in ("data", *TRAIN_SECTIONS) if name not in EVALUATE_SECTIONS]
    config = {name: section for name, section in experiment.logged.items() if name not in of_model}
    own = read_config(model_folder)
    config.update({name: own[name] for name in of_model if name in own})
    return config


def name_of_run(experiment: Experiment, model_folder: Path) -> str:
    """The name of a run of the evaluation's own: `dot · dates · seed 1 · beam size=10`.

    It has the models, the search, the settings that differ from the search's file, and another
    precision.
    """
    configs = [read_config(folder) for folder in (model_folder, *experiment.ensemble_folders)]
    for config in configs:
        # The search that a model was trained beside is not the one that it is evaluated with.
        config.pop("search", None)
    names = [readable_name(config, folders=config_folders()) for config in configs]
    models = " + ".join(names)
    if len(models) > LONGEST_ENSEMBLE:
        digest = config_digest({"names": names})[:4]
        models = f"{names[0]} + {len(names) - 1} more ({digest})"

    parts = [models]
    search = experiment.config["search"]
    if search is not None:
        name = choice_name(search) or "search"
        changed = changed_values("search", name, search)
        settings = [f"{key}={as_text(value)}" for key, value in changed.items()]
        parts.append(" ".join([name, *settings]))
    precision = other_precision(experiment, model_folder).get("precision")
    if precision is not None:
        parts.append(f"precision {precision}")
    return " · ".join(parts)[:250]  # MLflow's limit


# Columns of the table of metrics: a scale each, and the last one for what has none of them.
_SCALES = ("0–100", "0–1", "nats", "")


def print_metrics(metrics: Metrics, experiment: Experiment) -> None:
    """A table of the metrics of the test split in the order of the report, a column for a scale."""
    # Imported here, since the section draws figures, and matplotlib takes a second.
    section = experiment.task.report_section()
    own = [metric.measure(name) for name, metric in experiment.metrics.items()]
    measures = Measures((*section.measures, *own))
    in_order = measures.in_order(metrics)
    in_order += [name for name in sorted(metrics) if name not in in_order]  # facts of the split

    of_scales = {name: measures.named(name).scale for name in in_order}
    scales = [scale for scale in _SCALES if scale in of_scales.values()]
    table = Table("test split", title="Results")
    for scale in scales:
        table.add_column(scale or "other", justify="right")
    for name in in_order:
        label = f"{name} {measures.named(name).better}".strip()
        cells = [_shown(metrics[name]) if scale == of_scales[name] else "" for scale in scales]
        table.add_row(label, *cells)
    Console().print(table)


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
