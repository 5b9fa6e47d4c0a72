"""The runs of a comparison as MLflow remembers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attnlab.errors import ExperimentError
from attnlab.report.comparison.choices import SEED, short_names, system_names, varying
from attnlab.report.comparison.compared_run import ComparedRun, ComparedRuns, LeftOut, each_once, title_of
from attnlab.report.comparison.evaluation_files import has_evaluation, read_evaluation
from attnlab.tracking.reading import StoredRun


def runs_of_tracker(stored: Sequence[StoredRun], asked: tuple[str, str], named: bool) -> ComparedRuns:
    """
    Args:
        asked: by what they were asked for, as (setting, value).
        named: whether each of them was asked for by its id. One without an evaluation is then a mistake, and else it
            is left out.

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
    runs, repeated = each_once([_run(run, name, keys) for run, name in zip(evaluated, names, strict=True)])
    parents = {run.parent for run in evaluated}
    varied = list(short_names(keys).values())
    return ComparedRuns(
        title=title_of(" × ".join(varied) or "seeds", runs),
        told=[asked, ("varied", ", ".join(varied) or "nothing but the seed")],
        runs=runs,
        left_out=[*(LeftOut(run.name, "no evaluation among its artifacts") for run in bare), *repeated],
        parent=parents.pop() if len(parents) == 1 else None,
    )


def _run(run: StoredRun, system: str, keys: Sequence[str]) -> ComparedRun:
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
