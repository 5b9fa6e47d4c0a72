"""The report of an experiment: what its stages wrote, on one offline page."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from attnlab.config.identity import PACKAGE_ROOT
from attnlab.config.params import NO_REVISION, git_tags
from attnlab.config.paths import REPORT, check_replaceable
from attnlab.data.prepared import Prepared
from attnlab.errors import ExperimentError, masked
from attnlab.experiment.changes import changes, with_typed
from attnlab.experiment.composition import compose
from attnlab.experiment.config_sources import config_folders
from attnlab.experiment.evaluation import print_metrics
from attnlab.experiment.hydra_config import shown_choices
from attnlab.experiment.hydra_job import command_line, output_folder, python_path
from attnlab.experiment.params_file import outputs
from attnlab.experiment.point import experiment_lock
from attnlab.experiment.run import ExperimentRun, run_folder_of_evaluation
from attnlab.experiment.run_record import where_to_look
from attnlab.files import atomic_folder, resolve_path
from attnlab.report.asked import Asked, AskedSweep
from attnlab.runs.run_folder import SWEEP_TAG, RunState, read_state, read_uploaded
from attnlab.runs.sweep_job import current_job
from attnlab.runs.sweep_record import COMPARISON_FOLDER, SweepFolder, SweepRecord
from attnlab.tasks.task import Experiment
from attnlab.terminal import echo

PAGE = "index.html"

# What makes the page: its identity, and DVC's, follows from this code.
REPORT_SOURCES = (f"{__name__}:write_page", "task:report_section")


def report(experiment: Experiment, data: Prepared, run: ExperimentRun, evaluation: Path) -> Path:
    """Write the page of a run into Hydra's output folder, and return where it lies.

    The same page is not written twice; the folder of the run has it.
    """
    into = output_folder() / "report"
    # What the page shows follows from these.
    asked = asked_of(experiment, run_folder_of_evaluation(experiment, run.folder / "model"), into)
    inputs = f"{data.digest}\n{evaluation.name}\n{asked}"
    identity = experiment.identity(tuple(experiment.values), inputs, REPORT_SOURCES)
    cached = run.folder / "reported" / identity
    if not (cached / PAGE).is_file():
        shutil.rmtree(cached.parent, ignore_errors=True)
        training = run.folder / "training"
        write_page(experiment, asked, data.folder, training, evaluation, cached)
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
        asked_of(experiment, place, into),
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
    state = run_folder_of_evaluation(experiment, model)
    if not state.is_dir():
        return
    with experiment_lock(state):
        experiment.tracking.log_report(experiment.paths.runs_folder, state, page)


def asked_of(experiment: Experiment, place: Path | None, into: Path) -> Asked:
    """What an experiment was asked.

    place: the folder of its run. Without a run in it, the command and the revision are those of
        this process.
    into: the folder of the page.
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

    job = current_job()
    typed = command[2:] if job is None else job.record.overrides
    found = changes(experiment.config, experiment.choices, config_folders())
    run_id = "" if uploaded is None else uploaded.run_id
    run_page = _run_page(experiment, run_id)
    server = experiment.tracking.server_command(experiment.paths.runs_folder) if run_page else None
    return Asked(
        title=_name_in_sweep(state),
        changes=with_typed(found, typed, experiment.choices),
        choices=shown_choices(experiment.choices, experiment.config),
        command=_in_shell(command, experiment),
        revision=origin.get("git_revision", "").removeprefix(NO_REVISION),
        has_local_changes={"true": True, "false": False}.get(origin.get("git_dirty", "")),
        started=started,
        run_id=run_id,
        run_page=run_page,
        server=server or "",
        sweep=_asked_sweep(experiment, state, into),
    )


def _in_shell(command: Sequence[str], experiment: Experiment) -> str:
    """A command for a shell, with the PYTHONPATH that the user's own classes need."""
    path = python_path(experiment.config)
    setting = f"PYTHONPATH={shlex.quote(path)} " if path else ""
    return masked(setting + shlex.join(command))


def _run_page(experiment: Experiment, run_id: str | None) -> str:
    """The address of a run's page in MLflow; "" where it has none."""
    if not run_id:
        return ""
    return experiment.tracking.run_page(experiment.paths.runs_folder, run_id) or ""


def _name_in_sweep(state: RunState | None) -> str:
    """The name of a run among the others of its sweep; "" outside of sweeps."""
    job = current_job()
    if job is not None:
        return job.record.name
    if state is None or SWEEP_TAG not in state.record.tags:
        return ""
    return state.record.title or ""


def _asked_sweep(experiment: Experiment, state: RunState | None, into: Path) -> AskedSweep | None:
    """The sweep that a run is of; None outside of sweeps, and where its records are gone."""
    sweep = _sweep_of(experiment, state)
    if sweep is None:
        return None
    folder, record = sweep
    comparison = folder.path / COMPARISON_FOLDER / PAGE
    # What lies in one folder is moved together, and its links still lead to each other.
    is_beside = into.resolve().is_relative_to(folder.path.resolve()) and comparison.is_file()
    link = Path(os.path.relpath(comparison.resolve(), into.resolve())).as_posix()
    return AskedSweep(
        name=record.name,
        points=record.points,
        command=_in_shell(record.command, experiment),
        run_page=_run_page(experiment, record.run_id),
        compare_command=masked(record.compare_command),
        comparison=quote(link) if is_beside else "",
    )


def _sweep_of(
    experiment: Experiment, state: RunState | None
) -> tuple[SweepFolder, SweepRecord] | None:
    """The folder and the record of the sweep that a run is of."""
    job = current_job()
    identity = None
    if job is not None:
        identity = job.sweep.identity
    elif state is not None:
        identity = state.record.tags.get(SWEEP_TAG)
    if identity is None:
        return None
    folder = SweepFolder(experiment.paths.runs_folder / "sweeps" / identity)
    return (folder, folder.read()) if folder.exists() else None


def run_of_model(experiment: Experiment, model: Path) -> Path | None:
    """The folder of the run that the evaluation of a model went to; None without that model."""
    if not (model / "model.json").is_file():
        return None
    return run_folder_of_evaluation(experiment, model)


def write_page(
    experiment: Experiment,
    asked: Asked,
    data: Path,
    training: Path,
    evaluation: Path,
    into: Path,
) -> None:
    """Write the page into a folder, whole or not at all."""
    # Imported here: it takes seconds, and a page that was written before needs none of it.
    from attnlab.report.page import write_report

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
