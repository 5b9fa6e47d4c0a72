"""Compared runs, read from a sweep, from the folders of a chain of stages, or from the tracker."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.errors import ExperimentError
from attnlab.files import parse_yaml
from attnlab.report import stage_files
from attnlab.report.choices import SEED, short_names, system_names, varying
from attnlab.report.compared_runs import (
    ComparedRun,
    ComparedRuns,
    LeftOut,
    each_once,
    has_evaluation,
    read_evaluation,
    title_of,
)
from attnlab.report.stage_files import read_history, read_json
from attnlab.sweeps.record import JobRecord, SweepFolder, SweepRecord
from attnlab.tracking.params import dotted_params, short_params
from attnlab.training.spool import SPOOL_NAME, MetricSpool

if TYPE_CHECKING:
    from attnlab.tracking.stored_runs import StoredRun  # imports MLflow

_PEAK = "system/peak_training_megabytes"


def runs_of_sweep(folder: SweepFolder, runs_folder: Path) -> ComparedRuns:
    """The finished runs of a sweep; raises ExperimentError where no run is finished and evaluated."""
    record = folder.read()
    # A search may have had more trials before.
    jobs = [job for job in folder.jobs() if job.number < record.points]
    finished = [job for job in jobs if job.status == "finished"]
    lost = {}
    for job in finished:
        if not (runs_folder / "points" / str(job.identity) / "done.json").is_file():
            lost[job.name] = "its folder in runs/points is gone; the same command makes it again"
        elif not has_evaluation(_evaluation(folder, job)):
            lost[job.name] = (
                f"it has no evaluation in {_evaluation(folder, job)}; the same command with chain=true makes it"
            )
    finished = [job for job in finished if job.name not in lost]
    if not finished:
        raise ExperimentError(
            f"sweep: no point of {record.identity} ({record.name}) is finished and evaluated; the same command "
            "goes on, and chain=true evaluates"
        )
    keys = [key for key in record.varies if key != SEED]
    names = system_names([{key: job.choices[key] for key in keys if key in job.choices} for job in finished])
    runs, repeated = each_once(
        [_run_of_job(folder, job, name, keys, runs_folder) for job, name in zip(finished, names, strict=True)]
    )
    return ComparedRuns(
        title=title_of(record.name, runs),
        facts=[("sweep", record.identity), ("varied", ", ".join(record.varies)), ("command", _command(record))],
        runs=runs,
        left_out=[
            *_unfinished(record, jobs),
            *(LeftOut(name, reason) for name, reason in lost.items()),
            *repeated,
        ],
        parent=record.run_id,
    )


def _run_of_job(folder: SweepFolder, job: JobRecord, system: str, keys: list[str], runs_folder: Path) -> ComparedRun:
    point = runs_folder / "points" / str(job.identity)
    done = read_json(point / "done.json", "train", stage_files.Done)
    short = short_names(keys)
    return ComparedRun(
        name=job.name,
        system=system,
        choices={short[key]: job.choices[key] for key in keys if key in job.choices},
        seed=str(read_json(point / "model" / "config.json", "train", stage_files.Seeded)["seed"]),
        evaluation=read_evaluation(_evaluation(folder, job)),
        history=read_history(point / "training" / "history.csv"),
        cpu_seconds=done.get("training_cpu_seconds"),
        peak_megabytes=_peak_megabytes(point),
        run_id=job.run_id,
    )


def _evaluation(folder: SweepFolder, job: JobRecord) -> Path:
    """Beside the records if possible: the project may have moved since."""
    beside = folder.path / str(job.number) / "evaluation"
    return beside if beside.is_dir() else Path(job.output) / "evaluation"


def _peak_megabytes(point: Path) -> float | None:
    records, _ = MetricSpool(point / SPOOL_NAME).read()
    return next((record.metrics[_PEAK] for record in reversed(records) if _PEAK in record.metrics), None)


def _unfinished(record: SweepRecord, jobs: list[JobRecord]) -> list[LeftOut]:
    left_out = [
        LeftOut(job.name, f"failed: {job.error}" if job.status == "failed" else "still running, or stopped")
        for job in jobs
        if job.status != "finished"
    ]
    never = record.points - len(jobs)
    return [*left_out, *([LeftOut(f"{never} more of {record.points} points", "not started")] if never > 0 else [])]


def _command(record: SweepRecord) -> str:
    return f"python pipelines/train.py -m {shlex.join(record.overrides)}"


def runs_of_builds(folders: Sequence[Path]) -> ComparedRuns:
    """Runs from folders with `resolved.yaml`, `training/` and `evaluation/`; raises ExperimentError without these.

    They have no costs: the outputs of stages repeat to the byte, which times do not.
    """
    params = [_params(folder) for folder in folders]
    keys = varying(params)
    short = short_names(keys)
    systems = system_names([{key: each.get(key, "") for key in keys} for each in params])
    built = [
        ComparedRun(
            name=folder.name,
            system=system,
            choices={short[key]: each.get(key, "") for key in keys},
            seed=each.get(SEED, ""),
            evaluation=read_evaluation(folder / "evaluation"),
            history=read_history(folder / "training" / "history.csv"),
            cpu_seconds=None,
            peak_megabytes=None,
            run_id=None,
        )
        for folder, each, system in zip(folders, params, systems, strict=True)
    ]
    runs, repeated = each_once(built)
    varied = list(short.values())
    return ComparedRuns(
        title=title_of(" × ".join(varied) or "seeds", runs),
        facts=[
            ("builds", ", ".join(folder.name for folder in folders)),
            ("varied", ", ".join(varied) or "nothing but the seed"),
        ],
        runs=runs,
        left_out=repeated,
    )


def _params(folder: Path) -> Mapping[str, str]:
    path = folder / "resolved.yaml"
    try:
        config = parse_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ExperimentError(f"builds: {path} is missing; run the compose stage first") from None
    except UnicodeDecodeError:
        raise ExperimentError(f"builds: {path} is not UTF-8; run the compose stage again") from None
    except ValueError as error:
        raise ExperimentError(f"builds: {path} {error}") from None
    if not isinstance(config, Mapping):
        raise ExperimentError(f"builds: {path} is no config")
    config = {key: value for key, value in config.items() if key != "hydra"}
    return {**short_params(config), **dotted_params(config)}


def runs_of_tracker(stored: Sequence[StoredRun], asked: tuple[str, str], named: bool) -> ComparedRuns:
    """Runs of the tracker.

    Args:
        asked: the query, as (setting, value).
        named: whether the query lists ids. A run without an evaluation is then an error; otherwise it is left out.

    Raises:
        ExperimentError: there is nothing to compare.
    """
    bare = [run for run in stored if run.evaluation is None or not has_evaluation(run.evaluation)]
    without = [f"{run.name} ({run.run_id}) has no evaluation among its artifacts" for run in bare]
    if bare and named:
        raise ExperimentError([f"{asked[0]}: {sentence}; evaluate it first, or leave it out" for sentence in without])
    evaluated = [run for run in stored if run not in bare]
    if not evaluated:
        raise ExperimentError(f"{asked[0]}: no run with an evaluation was found by {asked[1]!r}")
    keys = varying([run.params for run in evaluated])
    names = system_names([{key: run.params.get(key, "") for key in keys} for run in evaluated])
    runs, repeated = each_once([_run_of_tracker(run, name, keys) for run, name in zip(evaluated, names, strict=True)])
    parents = {run.parent for run in evaluated}
    varied = list(short_names(keys).values())
    return ComparedRuns(
        title=title_of(" × ".join(varied) or "seeds", runs),
        facts=[asked, ("varied", ", ".join(varied) or "nothing but the seed")],
        runs=runs,
        left_out=[*(LeftOut(run.name, "no evaluation among its artifacts") for run in bare), *repeated],
        parent=parents.pop() if len(parents) == 1 else None,
    )


def _run_of_tracker(run: StoredRun, system: str, keys: Sequence[str]) -> ComparedRun:
    assert run.evaluation is not None
    short: Mapping[str, str] = short_names(keys)
    return ComparedRun(
        name=run.name,
        system=system,
        choices={short[key]: run.params.get(key, "") for key in keys},
        seed=run.params.get(SEED, ""),
        evaluation=read_evaluation(run.evaluation),
        history=run.history,
        cpu_seconds=run.metrics.get("time/training_cpu_seconds"),
        peak_megabytes=run.metrics.get("system/peak_training_megabytes"),
        run_id=run.run_id,
    )
