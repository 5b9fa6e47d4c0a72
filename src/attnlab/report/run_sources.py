"""Compared runs, read from a sweep, from the folders of a chain of stages, or from the tracker."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
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
from attnlab.project import pipeline_command
from attnlab.report.compared_runs import (
    ComparedRun,
    ComparedRuns,
    LeftOut,
)
from attnlab.runs.sweep_record import JobRecord, SweepFolder, name_of, short_key
from attnlab.tasks.saved import own_metrics_of, task_of_evaluation
from attnlab.training.spool import SPOOL_NAME, MetricSpool

if TYPE_CHECKING:
    from attnlab.runs.stored_runs import StoredRun  # imports MLflow

SEED = "seed"
# Columns of the table of runs; choices need other names.
_TAKEN = (SEED, "run", "system", "run_id")
# Settings that do not affect results.
_IRRELEVANT = ("tracking.", "paths.", "chain", "rerun", "save_every_minutes")
_PEAK = "system/peak_training_megabytes"


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
    reasons = [(job, _why_left_out(job, runs_folder)) for job in jobs]
    finished = [job for job, why in reasons if why is None]
    left_out = [LeftOut(job.name, why) for job, why in reasons if why is not None]
    if record.points > len(jobs):
        left_out.append(
            LeftOut(f"{record.points - len(jobs)} more of {record.points} points", "not started")
        )
    if not finished:
        raise ExperimentError(
            f"sweep: no point of {record.identity} ({record.name}) is finished and evaluated; the "
            "same command goes on, and chain=true evaluates"
        )
    keys = [key for key in record.varies if key != SEED]
    command = f"{pipeline_command('train')} -m {shlex.join(record.overrides)}"
    return _compared(
        [_run_of_job(job, keys, runs_folder, allow) for job in finished],
        record.name,
        [("sweep", record.identity), ("varied", ", ".join(record.varies)), ("command", command)],
        left_out,
        record.run_id,
    )


def _why_left_out(job: JobRecord, runs_folder: Path) -> str | None:
    if job.status != "finished":
        return f"failed: {job.error}" if job.status == "failed" else "still running, or stopped"
    if not (runs_folder / "points" / str(job.identity) / "done.json").is_file():
        return "its folder in runs/points is gone; the same command makes it again"
    evaluation = Path(job.output) / "evaluation"
    if not has_evaluation(evaluation):
        return f"it has no evaluation in {evaluation}; the same command with chain=true makes it"
    return None


def _run_of_job(
    job: JobRecord, keys: Sequence[str], runs_folder: Path, allow: Collection[str]
) -> ComparedRun:
    point = runs_folder / "points" / str(job.identity)
    records, _ = MetricSpool(point / SPOOL_NAME).read()
    peak = next(
        (record.metrics[_PEAK] for record in reversed(records) if _PEAK in record.metrics), None
    )
    cpu = read_json(point / "done.json", "train").get("training_cpu_seconds")
    config = read_json(point / "model" / "config.json", "train")
    return ComparedRun(
        name=job.name,
        choices={key: job.choices[key] for key in keys if key in job.choices},
        seed=str(config["seed"]),
        **_evaluated(Path(job.output) / "evaluation", allow),
        history=read_history(point / "training" / "history.csv"),
        costs=_costs(cpu, peak),
        parameters=_params(config),
        run_id=job.run_id,
    )


def _evaluated(folder: Path, allow: Collection[str]) -> dict[str, Any]:
    """What a run has from its evaluation folder."""
    task = task_of_evaluation(folder, allow)
    section = task.report_section()
    evaluation = read_evaluation(folder, section.sentences_file)
    own_metrics = own_metrics_of(folder)
    metrics = {name: recorded.metric(allow) for name, recorded in own_metrics.items()}
    return {
        "task": task.name,
        "section": section,
        "own_metrics": own_metrics,
        "resampled": {name: metric for name, metric in metrics.items() if metric is not None},
        "evaluation": evaluation,
    }


def _params(config: Mapping[str, Any]) -> dict[str, str]:
    return {**short_params(config), **dotted_params(config)}


def _costs(cpu_seconds: float | None, peak_megabytes: float | None) -> dict[str, float]:
    costs = {CPU_SECONDS.name: cpu_seconds, PEAK_MEGABYTES.name: peak_megabytes}
    return {name: value for name, value in costs.items() if value is not None}


def runs_of_builds(folders: Sequence[Path], allow: Collection[str] = ()) -> ComparedRuns:
    """Runs from folders with `resolved.yaml`, `training/` and `evaluation/`.

    They have no costs: the outputs of stages repeat to the byte, which times do not.

    Raises ExperimentError for a folder without these.
    """
    params = []
    for folder in folders:
        if not (folder / "resolved.yaml").is_file():
            raise ExperimentError(
                f"builds: there is no {folder / 'resolved.yaml'}; run the compose stage first"
            )
        config = yaml.safe_load((folder / "resolved.yaml").read_text(encoding="utf-8"))
        config.pop("hydra", None)
        params.append(_params(config))
    keys = varying(params)
    built = [
        ComparedRun(
            name=folder.name,
            choices={key: each.get(key, "null") for key in keys},
            seed=each.get(SEED, ""),
            **_evaluated(folder / "evaluation", allow),
            history=read_history(folder / "training" / "history.csv"),
            parameters=each,
        )
        for folder, each in zip(folders, params, strict=True)
    ]
    return _compared(
        built, None, [("builds", ", ".join(folder.name for folder in folders))], [], None
    )


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
    bare = [run for run in stored if run.evaluation is None or not has_evaluation(run.evaluation)]
    without = [f"{run.name} ({run.run_id}) has no evaluation among its artifacts" for run in bare]
    if bare and named:
        raise ExperimentError(
            [f"{asked[0]}: {sentence}; evaluate it first, or leave it out" for sentence in without]
        )
    evaluated = [run for run in stored if run not in bare]
    if not evaluated:
        raise ExperimentError(f"{asked[0]}: no run with an evaluation was found by {asked[1]!r}")
    keys = varying([run.params for run in evaluated])
    runs = [
        ComparedRun(
            name=run.name,
            choices={key: run.params.get(key, "null") for key in keys},
            seed=run.params.get(SEED, ""),
            **_evaluated(run.evaluation, allow),
            history=run.history,
            costs=_costs(run.metrics.get("time/training_cpu_seconds"), run.metrics.get(_PEAK)),
            parameters=run.params,
            run_id=run.run_id,
        )
        for run in evaluated
        if run.evaluation is not None
    ]
    parents = {run.parent for run in evaluated}
    left_out = [LeftOut(run.name, "no evaluation among its artifacts") for run in bare]
    return _compared(runs, None, [asked], left_out, parents.pop() if len(parents) == 1 else None)


def _compared(
    found: Sequence[ComparedRun],
    varied: str | None,
    facts: list[tuple[str, str]],
    left_out: list[LeftOut],
    parent: str | None,
) -> ComparedRuns:
    """Name the systems and shorten the names of the choices.

    A run with the choices and the seed of an earlier one is left out: it is no second seed.

    found: runs without a system, their choices by full keys.
    varied: what varies, for the title; None for the names of the choices.
    """
    short = short_names(list(dict.fromkeys(key for run in found for key in run.choices)))
    if varied is None:
        varied = " × ".join(short.values()) or "seeds"
        facts = [*facts, ("varied", ", ".join(short.values()) or "nothing but the seed")]
    first: dict[tuple[str, str], ComparedRun] = {}
    left_out = list(left_out)
    for run, system in zip(found, system_names([run.choices for run in found]), strict=True):
        others = {
            key: value
            for key, value in run.parameters.items()
            if not {key, key.replace(".", "/")} & {*short, *short.values(), SEED}
            and not key.startswith(_IRRELEVANT)
        }
        choices = {short[key]: value for key, value in run.choices.items()}
        run = replace(run, system=system, choices=choices, parameters=others)
        same = first.setdefault((system, run.seed), run)
        if same is not run:
            left_out.append(LeftOut(run.name, f"the same choices and seed as {same.name}"))
    runs, systems = list(first.values()), len({system for system, _ in first})
    title = (
        f"{varied}: {len(runs)} run{'s' * (len(runs) != 1)} of {systems} "
        f"system{'s' * (systems != 1)}"
    )
    return ComparedRuns(title, facts, runs, left_out, parent)


def varying(runs: Sequence[Mapping[str, str]]) -> list[str]:
    """The params that differ between systems.

    These are short ones such as `attention`, and as few dotted ones as possible. A choice implies
    many dotted params, its class and its sizes. So these count only where runs that agree in all
    short ones differ in them, as in a sweep over the learning rate.

    runs: the params of each.
    """
    short = _differing(runs, (key for params in runs for key in params if "." not in key))
    attends = [params for params in runs if params.get("attention") != "none"]
    if len(attends) < len(runs) and "decoder" not in _differing(attends, short):
        # Without attention there is one decoder: no further choice
        short = [key for key in short if key != "decoder"]
    groups: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for params in runs:
        groups.setdefault(tuple(params.get(key, "") for key in short), []).append(params)
    dotted = [
        key
        for group in groups.values()
        for key in _differing(group, (key for params in group for key in params if "." in key))
    ]
    return list(dict.fromkeys([*short, *dotted]))


def _differing(runs: Sequence[Mapping[str, str]], keys: Iterable[str]) -> list[str]:
    return [
        key
        for key in sorted(set(keys))  # the tracker returns params in any order
        if key != SEED
        and not key.startswith(_IRRELEVANT)
        and len({params.get(key) for params in runs}) > 1
    ]


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """{key: its last word}, or the whole key where last words collide."""
    ends = Counter(map(short_key, keys))
    return {
        key: end if ends[end := short_key(key)] == 1 and end not in _TAKEN else key for key in keys
    }


def system_names(choices: Sequence[Mapping[str, str]]) -> list[str]:
    """A name for each of these choices (full keys, without a seed).

    Two names are equal exactly where the choices are. Names round numbers; where two systems would
    share a name, both get their choices as written.
    """
    written = [" · ".join(f"{key}={value}" for key, value in each.items()) for each in choices]
    names = [name_of(each) for each in choices]
    sharing: dict[str, set[str]] = {}
    for name, text in zip(names, written, strict=True):
        sharing.setdefault(name, set()).add(text)
    return [
        text if len(sharing[name]) > 1 else name for name, text in zip(names, written, strict=True)
    ]
