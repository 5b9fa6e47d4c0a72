"""The runs of a sweep, read from its records and its points; no tracker is asked."""

from __future__ import annotations

import shlex
from pathlib import Path

from attnlab.errors import ExperimentError
from attnlab.report import stage_files
from attnlab.report.comparison.choices import SEED, short_names, system_names
from attnlab.report.comparison.compared_run import ComparedRun, ComparedRuns, LeftOut, each_once, title_of
from attnlab.report.comparison.evaluation_files import has_evaluation, read_evaluation
from attnlab.report.read import read_history, read_json
from attnlab.sweeps.record import JobRecord, SweepFolder, SweepRecord
from attnlab.training.spool import SPOOL_NAME, MetricSpool

_PEAK = "system/peak_training_megabytes"


def runs_of_sweep(folder: SweepFolder, runs_folder: Path) -> ComparedRuns:
    """What the sweep has finished; raises ExperimentError where that is nothing, or has no evaluation."""
    record = folder.read()
    # Of a search that was given more trials before, no more than now.
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
        [_run(folder, job, name, keys, runs_folder) for job, name in zip(finished, names, strict=True)]
    )
    return ComparedRuns(
        title=title_of(record.name, runs),
        told=[("sweep", record.identity), ("varied", ", ".join(record.varies)), ("command", _command(record))],
        runs=runs,
        left_out=[
            *_unfinished(record, jobs),
            *(LeftOut(name, reason) for name, reason in lost.items()),
            *repeated,
        ],
        parent=record.run_id,
    )


def _run(folder: SweepFolder, job: JobRecord, system: str, keys: list[str], runs_folder: Path) -> ComparedRun:
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
    """Beside the records where it is there, for the project may have been moved since."""
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
