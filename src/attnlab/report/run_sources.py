"""Compared runs, read from a sweep, from the folders of a chain of stages, or from the tracker."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import yaml  # type: ignore[import-untyped]

from attnlab.config.params import dotted_params, short_params
from attnlab.errors import ExperimentError
from attnlab.evaluation.evaluation_files import (
    has_evaluation,
    read_evaluation,
    read_history,
    read_json,
)
from attnlab.evaluation.measures import CPU_SECONDS, PEAK_MEGABYTES
from attnlab.report.compared_runs import ComparedRun, ComparedRuns, LeftOut
from attnlab.report.grouping import SEED, group_into_systems, varying
from attnlab.runs.sweep_points import key_of
from attnlab.runs.sweep_record import JobRecord, SweepFolder, SweepRecord
from attnlab.tasks.saved import own_metrics_of, task_of_evaluation
from attnlab.training.spool import SPOOL_NAME, MetricSpool

if TYPE_CHECKING:
    from attnlab.runs.stored_runs import StoredRun  # imports MLflow


_ENOUGH_SEEDS = 5
# Logged metrics of a training.
_CPU_SECONDS = "system/training_cpu_seconds"
_PEAK_MEGABYTES = "system/peak_training_megabytes"


def runs_of_sweep(
    folder: SweepFolder, runs_folder: Path, allow: Collection[str] = ()
) -> ComparedRuns:
    """The finished runs of a sweep.

    allow: modules outside of attnlab whose classes the evaluations may name.

    Raises ExperimentError where no run is finished and evaluated.
    """
    record = folder.read()
    # A search may have had more trials before.
    jobs = [job for job in folder.jobs() if job.number < record.points]
    finished, left_out = _finished_and_others(jobs, runs_folder)
    not_started = record.points - len(jobs)
    if not_started > 0:
        left_out.append(LeftOut(f"{not_started} more of {record.points} points", "not started"))
    if not finished:
        raise ExperimentError(
            f"sweep: no point of {record.identity} ({record.name}) is finished and evaluated; the "
            "same command goes on, and chain=true evaluates"
        )

    keys = [key for key in record.varies if key != SEED]
    runs = [_run_of_job(job, keys, runs_folder, allow) for job in finished]
    facts = [
        ("sweep", record.identity),
        ("varied", ", ".join(record.varies)),
        ("command", shlex.join(record.command)),
    ]
    compared = group_into_systems(
        runs, varied=record.name, facts=facts, left_out=left_out, parent=record.run_id
    )
    return replace(compared, more_seeds=_command_with_more_seeds(record, runs))


def _command_with_more_seeds(record: SweepRecord, runs: Sequence[ComparedRun]) -> str | None:
    """The command of a sweep with five seeds, those that it has and further ones.

    None for a search, which would choose other points.
    """
    if record.is_search:
        return None

    seeds = sorted({int(run.seed) for run in runs})
    number = 1
    while len(seeds) < _ENOUGH_SEEDS:
        if number not in seeds:
            seeds.append(number)
        number += 1

    others = [text for text in record.overrides if key_of(text) != SEED]
    with_seeds = [*others, f"{SEED}={','.join(map(str, seeds))}"]
    return shlex.join(replace(record, overrides=with_seeds).command)


def _finished_and_others(
    jobs: Sequence[JobRecord], runs_folder: Path
) -> tuple[list[JobRecord], list[LeftOut]]:
    """The jobs that can be compared, and why the others cannot."""
    finished = []
    left_out = []
    for job in jobs:
        reason = _why_left_out(job, runs_folder)
        if reason is None:
            finished.append(job)
        else:
            left_out.append(LeftOut(job.name, reason))
    return finished, left_out


def _why_left_out(job: JobRecord, runs_folder: Path) -> str | None:
    """The reason to leave a job out of the comparison; None if it can be compared."""
    if job.gave_up:
        return f"{job.status}: {job.error}"
    if job.status != "finished":
        return "still running, or stopped"
    if not (runs_folder / "points" / str(job.identity) / "done.json").is_file():
        return "its folder in runs/points is gone; the same command makes it again"
    evaluation = Path(job.output) / "evaluation"
    if not has_evaluation(evaluation):
        return f"it has no evaluation in {evaluation}; the same command with chain=true makes it"
    return None


def _run_of_job(
    job: JobRecord, keys: Sequence[str], runs_folder: Path, allow: Collection[str]
) -> ComparedRun:
    """A finished job as a run; keys: of the choices that the sweep varies."""
    point = runs_folder / "points" / str(job.identity)
    output = Path(job.output)
    config = read_json(point / "model" / "config.json", "train")
    done = read_json(point / "done.json", "train")
    costs = _costs(
        cpu_seconds=done.get("training_cpu_seconds"),
        peak_megabytes=_last_peak(point / SPOOL_NAME),
    )
    return _run_with_evaluation(
        output / "evaluation",
        allow,
        name=job.name,
        choices={key: job.choices[key] for key in keys if key in job.choices},
        seed=str(config["seed"]),
        history=read_history(point / "training" / "history.csv"),
        costs=costs,
        parameters=_params(config),
        run_id=job.run_id,
        report=_report_in(output),
    )


def _report_in(output: Path) -> Path | None:
    """The page of a run's report; None where none was written."""
    page = output / "report" / "index.html"
    return page if page.is_file() else None


def _last_peak(spool: Path) -> float | None:
    """The last memory peak that a training logged; None where it logged none."""
    records, _ = MetricSpool(spool).read()
    for record in reversed(records):
        if _PEAK_MEGABYTES in record.metrics:
            return record.metrics[_PEAK_MEGABYTES]
    return None


def _run_with_evaluation(
    folder: Path,
    allow: Collection[str],
    *,
    name: str,
    choices: Mapping[str, str],
    seed: str,
    history: Mapping[str, Sequence[tuple[int, float]]],
    parameters: Mapping[str, str],
    costs: Mapping[str, float] = MappingProxyType({}),
    run_id: str | None = None,
    report: Path | None = None,
) -> ComparedRun:
    """A run, with its task and its metrics read from its evaluation folder."""
    task = task_of_evaluation(folder, allow)
    section = task.report_section()
    evaluation = read_evaluation(folder, section.sentences_file)
    own_metrics = own_metrics_of(folder)
    resampled = {}
    for metric_name, recorded in own_metrics.items():
        metric = recorded.metric(allow)
        if metric is not None:
            resampled[metric_name] = metric

    return ComparedRun(
        name=name,
        choices=choices,
        seed=seed,
        task=task.name,
        section=section,
        own_metrics=own_metrics,
        resampled=resampled,
        evaluation=evaluation,
        history=history,
        costs=costs,
        parameters=parameters,
        run_id=run_id,
        report=report,
    )


def _params(config: Mapping[str, Any]) -> dict[str, str]:
    return {**short_params(config), **dotted_params(config)}


def _costs(cpu_seconds: float | None, peak_megabytes: float | None) -> dict[str, float]:
    """The costs that were measured, by name."""
    costs = {CPU_SECONDS.name: cpu_seconds, PEAK_MEGABYTES.name: peak_megabytes}
    return {name: value for name, value in costs.items() if value is not None}


def runs_of_builds(folders: Sequence[Path], allow: Collection[str] = ()) -> ComparedRuns:
    """Runs from folders with `resolved.yaml`, `training/` and `evaluation/`.

    They have no costs: the outputs of stages repeat to the byte, which times do not.

    Raises ExperimentError for a folder without these.
    """
    params_of_builds = [_params(_config_of_build(folder)) for folder in folders]
    keys = varying(params_of_builds)
    runs = []
    for folder, params in zip(folders, params_of_builds, strict=True):
        run = _run_with_evaluation(
            folder / "evaluation",
            allow,
            name=folder.name,
            choices=_choices_of(params, keys),
            seed=params.get(SEED, ""),
            history=read_history(folder / "training" / "history.csv"),
            parameters=params,
            report=_report_in(folder),
        )
        runs.append(run)
    names = ", ".join(folder.name for folder in folders)
    return group_into_systems(
        runs, varied=None, facts=[("builds", names)], left_out=[], parent=None
    )


def _choices_of(params: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """The params of these names, as the choices of a run."""
    return {key: params.get(key, "null") for key in keys}


def _config_of_build(folder: Path) -> dict[str, Any]:
    """The config that the compose stage wrote, without Hydra's own section."""
    path = folder / "resolved.yaml"
    if not path.is_file():
        raise ExperimentError(f"builds: there is no {path}; run the compose stage first")
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config.pop("hydra", None)
    return config


def runs_of_tracker(
    stored: Sequence[StoredRun],
    asked: tuple[str, str],
    named: bool,
    allow: Collection[str] = (),
) -> ComparedRuns:
    """Runs of the tracker.

    Args:
        asked: the query, as (setting, value).
        named: whether the query lists ids. A run without an evaluation is then an error; otherwise
            it is left out.

    Raises:
        ExperimentError: there is nothing to compare.
    """
    setting, query = asked
    evaluated = []
    unevaluated = []
    for run in stored:
        if run.evaluation is not None and has_evaluation(run.evaluation):
            evaluated.append(run)
        else:
            unevaluated.append(run)
    if unevaluated and named:
        problems = [
            f"{setting}: {run.name} ({run.run_id}) has no evaluation among its artifacts; "
            "evaluate it first, or leave it out"
            for run in unevaluated
        ]
        raise ExperimentError(problems)
    if not evaluated:
        raise ExperimentError(f"{setting}: no run with an evaluation was found by {query!r}")

    keys = varying([run.params for run in evaluated])
    runs = [_run_of_tracker(run, keys, allow) for run in evaluated]
    left_out = [LeftOut(run.name, "no evaluation among its artifacts") for run in unevaluated]
    # Only where all runs are children of one sweep can the comparison be added to its run.
    parents = {run.parent for run in evaluated}
    parent = parents.pop() if len(parents) == 1 else None
    return group_into_systems(runs, varied=None, facts=[asked], left_out=left_out, parent=parent)


def _run_of_tracker(run: StoredRun, keys: Sequence[str], allow: Collection[str]) -> ComparedRun:
    """A run of the tracker that has an evaluation; keys: of the params that are its choices."""
    assert run.evaluation is not None
    costs = _costs(
        cpu_seconds=run.metrics.get(_CPU_SECONDS),
        peak_megabytes=run.metrics.get(_PEAK_MEGABYTES),
    )
    return _run_with_evaluation(
        run.evaluation,
        allow,
        name=run.name,
        choices=_choices_of(run.params, keys),
        seed=run.params.get(SEED, ""),
        history=run.history,
        costs=costs,
        parameters=run.params,
        run_id=run.run_id,
    )
