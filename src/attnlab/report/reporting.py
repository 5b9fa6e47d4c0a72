"""The report of an experiment: what its stages wrote, on one offline page."""

from __future__ import annotations

import json
import shlex
import shutil
from datetime import UTC, datetime
from pathlib import Path

from attnlab.config.identity import PACKAGE_ROOT
from attnlab.config.params import NO_REVISION, git_tags
from attnlab.config.paths import REPORT, check_replaceable
from attnlab.data.prepared import Prepared
from attnlab.errors import ExperimentError, masked
from attnlab.experiment.changes import changes
from attnlab.experiment.composition import compose
from attnlab.experiment.evaluation import print_metrics
from attnlab.experiment.hydra_config import config_folders, shown_choices
from attnlab.experiment.hydra_job import command_line, output_folder
from attnlab.experiment.params_file import outputs
from attnlab.experiment.run import (
    ExperimentRun,
    experiment_lock,
    run_state,
    where_to_look,
)
from attnlab.files import atomic_folder, resolve_path
from attnlab.report.asked import Asked
from attnlab.report.page import write_report
from attnlab.runs.run_folder import read_state, read_uploaded
from attnlab.tasks.task import Experiment
from attnlab.terminal import echo

PAGE = "index.html"

# What makes the page: its identity, and DVC's, follows from this code.
REPORT_SOURCES = (f"{__name__}:write_page", "task:report_section")


def report(experiment: Experiment, data: Prepared, run: ExperimentRun, evaluation: Path) -> Path:
    """Write the page of a run into Hydra's output folder, and return where it lies.

    The same page is not written twice; the folder of the run has it.
    """
    # What the page shows follows from these.
    asked = asked_of(experiment, run_state(experiment, run.folder / "model"))
    inputs = f"{data.digest}\n{evaluation.name}\n{asked}"
    identity = experiment.identity(tuple(experiment.values), inputs, REPORT_SOURCES)
    cached = run.folder / "reported" / identity
    if not (cached / PAGE).is_file():
        shutil.rmtree(cached.parent, ignore_errors=True)
        training = run.folder / "training"
        write_page(experiment, asked, data.folder, training, evaluation, cached)
    into = output_folder() / "report"
    with atomic_folder(into) as temporary:
        shutil.copytree(cached, temporary, dirs_exist_ok=True)
    _log(experiment, run.folder / "model", into / PAGE)
    return into / PAGE


def report_folders(experiment: Experiment) -> Path:
    """Write the page of what the stages of DVC wrote, and return where it lies."""
    paths = experiment.paths
    if paths.data is None or paths.training is None or paths.evaluation is None:
        raise ExperimentError(
            "paths.data, paths.training and paths.evaluation must name what the other stages "
            "wrote; give all three"
        )
    into = output_folder() / "report" if paths.report is None else resolve_path(paths.report)
    place = None if paths.model is None else run_of_model(experiment, resolve_path(paths.model))
    write_page(
        experiment,
        asked_of(experiment, place),
        data=resolve_path(paths.data),
        training=resolve_path(paths.training),
        evaluation=resolve_path(paths.evaluation),
        into=into,
    )
    if paths.model is not None:
        _log(experiment, resolve_path(paths.model), into / PAGE)
    return into / PAGE


def _log(experiment: Experiment, model: Path, page: Path) -> None:
    """Log the page to the run of MLflow that has the evaluation."""
    if not model.is_dir():
        return
    state = run_state(experiment, model)
    if not state.is_dir():
        return
    with experiment_lock(state):
        experiment.tracking.log_report(experiment.paths.runs_folder, state, page)


def asked_of(experiment: Experiment, place: Path | None) -> Asked:
    """What an experiment was asked.

    place: the folder of its run. Without a run in it, the command and the revision are those of
        this process.
    """
    state = None if place is None else read_state(place)
    uploaded = None if place is None else read_uploaded(place)
    command = command_line()
    origin = {}
    started = ""
    if state is None:
        origin = git_tags(PACKAGE_ROOT)
    else:
        command = state.record.command or command
        origin = dict(state.origin)
        started = f"{datetime.fromtimestamp(state.started / 1000, UTC):%Y-%m-%d %H:%M} UTC"

    run_id = "" if uploaded is None else uploaded.run_id
    page = None
    if run_id:
        page = experiment.tracking.run_page(experiment.paths.runs_folder, run_id)
    return Asked(
        changes=changes(experiment.config, experiment.choices, config_folders()),
        choices=shown_choices(experiment.choices, experiment.config),
        command=masked(shlex.join(command)),
        revision=origin.get("git_revision", "").removeprefix(NO_REVISION),
        has_local_changes={"true": True, "false": False}.get(origin.get("git_dirty", "")),
        started=started,
        run_id=run_id,
        run_page=page or "",
    )


def run_of_model(experiment: Experiment, model: Path) -> Path | None:
    """The folder of the run that the evaluation of a model went to; None without that model."""
    if not (model / "model.json").is_file():
        return None
    return run_state(experiment, model)


def write_page(
    experiment: Experiment,
    asked: Asked,
    data: Path,
    training: Path,
    evaluation: Path,
    into: Path,
) -> None:
    """Write the page into a folder, whole or not at all."""
    check_replaceable("paths.report", into, REPORT)
    write_report(
        experiment.config,
        asked,
        experiment.task.report_section(),
        experiment.metrics,
        data=data,
        training=training,
        evaluation=evaluation,
        into=into,
        folders=config_folders(),
    )


def show_outputs(experiment: Experiment, run: ExperimentRun, page: Path) -> None:
    """Print where everything is that an experiment left."""
    output = output_folder()
    echo(f"metrics: {output / 'metrics.json'}")
    echo(f"report:  {page}")
    echo(f"model:   {run.folder / 'model'}")
    echo(f"MLflow:  {where_to_look(experiment)}")


def show_build() -> None:
    """Print the metrics that `dvc repro` found, and where its report and MLflow are."""
    path = Path(outputs()["evaluation"], "metrics.json")
    if not path.is_file():
        raise ExperimentError(
            f"there is no {path} to show; run dvc repro first, in the folder that holds dvc.yaml"
        )
    metrics = json.loads(path.read_text(encoding="utf-8"))
    experiment = compose(folder=Path("build"), name="resolved")
    print_metrics(metrics, experiment)
    print(f"report: {Path(outputs()['report'], 'index.html').resolve()}")
    print(f"MLflow: {where_to_look(experiment)}")
