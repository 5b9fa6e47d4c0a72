"""The first process of a sweep, or of a part of it.

It opens the sweep's run, passes it to the jobs, watches them, and closes it. Of the processes that
lead parts of one sweep the first opens the run, and whoever ends last closes it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import psutil
from filelock import Timeout

from attnlab.errors import ExperimentError, JobFailedError
from attnlab.locks import lock
from attnlab.runs.run import Run
from attnlab.runs.run_folder import RunRecord, places_of_runs
from attnlab.runs.search_result import SearchResult
from attnlab.runs.shared_views import View
from attnlab.runs.sweep_claims import is_claimed
from attnlab.runs.sweep_display import print_ranking, print_search, showing_progress
from attnlab.runs.sweep_job import FOLDER_VARIABLE, LEADER_VARIABLE, error_sentence, this_process
from attnlab.runs.sweep_leaders import Leaders, leaders_of
from attnlab.runs.sweep_numbers import NumbersOfLeader
from attnlab.runs.sweep_record import (
    LOCK,
    JobRecord,
    SweepFolder,
    SweepRecord,
    as_markdown,
    ranking,
)
from attnlab.runs.sweep_settings import JobProcesses, part_of
from attnlab.runs.tracking import Tracking

_PATIENCE = 15.0  # seconds for a worker to close its run
_CANCELLED = "its job on Slurm was cancelled; the same command goes on"


@contextmanager
def lead_sweep(
    record: SweepRecord,
    tracking: Tracking,
    runs_folder: Path,
    launcher: JobProcesses,
    view: View | None = None,
    shard: str | None = None,
    is_shared: bool = False,
) -> Iterator[SweepFolder]:
    """Lead a sweep, or a part of it, while the block runs its jobs.

    record: without `run_id` and `started`, which are found here.
    launcher: jobs on this machine end when this process does.
    view: how MLflow shows the runs of the task of all points; None where they are of several.
    shard: the part, such as `3/8`; None for the whole sweep.
    is_shared: whether any number of processes may lead it, since they share the trials of a search.

    Raises ExperimentError, in place of whatever the block raised, where jobs failed.
    """
    tracking.follow_moved_folder(runs_folder)
    folder = SweepFolder(runs_folder / "sweeps" / record.identity)
    of_sweep = tracking.for_sweep()
    folder.path.mkdir(parents=True, exist_ok=True)
    part = folder if shard is None else folder.part(part_of(shard, record.points))
    if is_shared:
        part = folder.part(NumbersOfLeader(folder.path, this_process()))
    before = psutil.Process().children(recursive=True)
    leaders = Leaders(folder.path, shard, is_shared)

    def start_run(of_sweep: Tracking) -> Run:
        return of_sweep.start(runs_folder, folder.path, _run_record(record, view))

    with ExitStack() as leading:
        leading.enter_context(_terminable())
        with leaders.at_the_gate():
            leading.enter_context(leaders.leading())
            # The database, the experiment and the sweep's run exist before the first job needs
            # them.
            run = None if leaders.others() else start_run(of_sweep)
            if run is None:  # the others have started it
                record = folder.read()
            else:
                record = replace(record, run_id=run.run_id, started=time.time())
                folder.write(record)
        print(_opening_line(record, shard), file=sys.stderr)
        print(f"MLflow: {tracking.where_to_look(runs_folder, view)}", file=sys.stderr)

        points = len(part_of(shard, record.points))
        progress = showing_progress(part, runs_folder, points, launcher, record.started)
        error: BaseException | None = None
        try:
            with _job_environment(folder, launcher), progress:
                yield folder
        except BaseException as raised:
            error = raised
            if launcher.on_this_machine:
                _end_what_runs(part, record, tracking, runs_folder, before, raised)
            elif launcher.kind == "slurm" and not isinstance(raised, Exception):
                print(_stopped_before_slurm(record), file=sys.stderr)
        if not launcher.on_this_machine:
            _close_what_was_lost(part, record, tracking, runs_folder)
        with leaders.at_the_gate():
            if leaders.others():
                _leave(part, record, shard, error)
            elif error is None and not launcher.waits and not is_over(folder):
                print(_left_to_slurm(record), file=sys.stderr)
            else:
                with run or start_run(of_sweep.that_only_warns()) as last:
                    if error is not None and not isinstance(error, Exception):
                        raise error
                    # Jobs that nobody waited for may have ended in an earlier start.
                    closed = part if launcher.waits else folder.part(range(record.points))
                    _close(last, folder, closed, record, runs_folder, tracking, error)
        if error is not None:
            raise error


def _run_record(record: SweepRecord, view: View | None) -> RunRecord:
    """What the tracker is told of a sweep's own run."""
    return RunRecord(
        {},
        record.identity,
        "",
        tags={"sweep": record.identity, "varies": ", ".join(record.varies)},
        name=f"sweep · {record.name}",
        command=record.command,
        view=view,
    )


def _opening_line(record: SweepRecord, shard: str | None) -> str:
    """What a sweep prints when it starts."""
    points = len(part_of(shard, record.points))
    words = "1 point" if points == 1 else f"{points} points"
    if shard is not None:
        words = f"part {shard}, {words} of {record.points}"
    return f"sweep {record.identity} ({record.name}): {words}"


def _leave(
    part: SweepFolder, record: SweepRecord, shard: str | None, error: BaseException | None
) -> None:
    """Report how the jobs of a part ended, while other parts still run."""
    jobs = part.jobs(record.started)
    finished = [job for job in jobs if job.status == "finished"]
    points = len(part_of(shard, record.points))
    sweep = f"sweep {record.identity} ({record.name})"
    if shard is None:
        line = f"{len(finished)} points finished by this command; other commands still search"
    else:
        line = (
            f"{len(finished)} of the {points} points of part {shard} finished; "
            "other parts still run"
        )
    print(f"{sweep}: {line}", file=sys.stderr)
    if error is None or isinstance(error, Exception):
        _raise_failures([job for job in jobs if job.gave_up], points, error)


def _left_to_slurm(record: SweepRecord) -> str:
    """What a command says that does not wait for its jobs."""
    return (
        f"sweep {record.identity} ({record.name}): Slurm has its jobs, and the last one of them "
        f"ends it; attnlab sweep status {record.identity} shows how it stands"
    )


def _stopped_before_slurm(record: SweepRecord) -> str:
    """What a command says that is stopped while Slurm has its jobs."""
    return (
        f"sweep {record.identity} ({record.name}): the jobs that Slurm has go on; the same command "
        f"joins them, and attnlab sweep cancel {record.identity} ends them"
    )


def is_over(folder: SweepFolder) -> bool:
    """Whether every point of a sweep has ended, as far as this start of it is concerned."""
    record = folder.read()
    if folder.count() < record.points:  # without reading thousands of records after each job
        return False
    ended = set()
    for job in folder.jobs():
        gave_up = job.gave_up and job.ended_in(record.started)
        if job.status == "finished" or gave_up:
            ended.add(job.number)
    return ended.issuperset(range(record.points))


def close_if_over(
    folder: SweepFolder, tracking: Tracking, runs_folder: Path, view: View | None
) -> None:
    """Close a sweep that nobody leads any more, once its last point has ended.

    Jobs on Slurm do so, whose command did not wait for them.
    """
    with Leaders(folder.path, None).at_the_gate():
        record = folder.read()
        if leaders_of(folder.path) or record.ended is not None or not is_over(folder):
            return
        of_sweep = tracking.for_sweep().that_only_warns()
        with (
            suppress(ExperimentError),  # of failed points, which failed in jobs of their own
            of_sweep.start(runs_folder, folder.path, _run_record(record, view)) as run,
        ):
            every = folder.part(range(record.points))
            _close(run, folder, every, record, runs_folder, tracking, None)


def close_cancelled(folder: SweepFolder, tracking: Tracking, runs_folder: Path) -> None:
    """Close what a sweep left open whose jobs on Slurm were cancelled, and that nobody leads."""
    with Leaders(folder.path, None).at_the_gate():
        if leaders_of(folder.path) or folder.read().ended is not None:
            return
        for job in folder.jobs():
            if job.status == "running" and not is_claimed(folder, job.number):
                cancelled = replace(job, status="stopped", ended=time.time(), error=_CANCELLED)
                folder.write_job(cancelled)
                _close_runs_of(job, tracking, runs_folder, _CANCELLED)
        tracking.close(runs_folder, folder.path, _CANCELLED)


def _end_what_runs(
    folder: SweepFolder,
    record: SweepRecord,
    tracking: Tracking,
    runs_folder: Path,
    before: Sequence[psutil.Process],
    error: BaseException,
) -> None:
    """Stop the workers, and close the jobs that one of them left in the middle: nobody else will.

    before: children of this process that are none of the sweep's. error: what ended the sweep.
    """
    children = [child for child in psutil.Process().children(recursive=True) if child not in before]
    workers = [child for child in children if _is_worker(child)]
    for stop in (psutil.Process.terminate, psutil.Process.kill):
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                stop(worker)
        _, workers = psutil.wait_procs(workers, timeout=_PATIENCE)
    left = (
        "its process is gone: stopped with the sweep, or killed, as where memory runs out; "
        "the same command goes on"
    )
    status: Literal["failed", "stopped"] = "failed" if isinstance(error, Exception) else "stopped"
    for job in folder.jobs(record.started):
        if job.status == "running":
            folder.write_job(replace(job, status=status, ended=time.time(), error=left))
            _close_runs_of(job, tracking, runs_folder, left)


def _is_worker(child: psutil.Process) -> bool:
    """False for a process that is gone, and for joblib's resource tracker.

    That one ends by itself, after the workers, and complains if it is stopped.
    """
    try:
        return "resource_tracker" not in " ".join(child.cmdline())
    except psutil.NoSuchProcess:  # a zombie too
        return False


def _close_what_was_lost(
    folder: SweepFolder, record: SweepRecord, tracking: Tracking, runs_folder: Path
) -> None:
    """Close the runs of jobs that did not finish; a scheduler may have killed some of them."""
    for job in folder.jobs(record.started):
        if job.gave_up and job.error is not None:
            _close_runs_of(job, tracking, runs_folder, job.error)


def _close_runs_of(job: JobRecord, tracking: Tracking, runs_folder: Path, reason: str) -> None:
    """Close the runs that the killed process of a job left open; others are closed already."""
    for place in places_of_runs(runs_folder / "points" / str(job.identity)):
        with suppress(Timeout), lock(place / LOCK).acquire(timeout=0):
            tracking.close(runs_folder, place, reason)


def _close(
    run: Run,
    folder: SweepFolder,
    part: SweepFolder,
    record: SweepRecord,
    runs_folder: Path,
    tracking: Tracking,
    error: Exception | None,
) -> None:
    """Report how the jobs ended, and complete the sweep's run.

    The run shows the ranking of its points and the metrics of the best one.

    part: the folder with the jobs of this process alone.
    """
    # Parts may have been started at other times.
    jobs = folder.jobs(record.started if part is folder else None)
    search = SearchResult.read(folder.path)
    # A search that was pruned has fewer points than it might have had.
    has_no_other_part = part is folder or search is not None
    if len(jobs) >= record.points or (error is None and has_no_other_part):
        folder.write(replace(record, ended=time.time()))
    finished = [job for job in jobs if job.status == "finished"]
    gave_up = [job for job in jobs if job.gave_up]
    ranked = []
    with suppress(ExperimentError):  # of a damaged file, which whoever reads it next reports
        ranked = ranking(finished, runs_folder)
    print_ranking(ranked, jobs, record.main_metrics)
    print(_closing_line(record, finished), file=sys.stderr)

    ended = f"{len(finished)} of {record.points} points finished, {_counts(gave_up)}"
    if search is not None:
        ended = "\n\n".join([ended, *_found_in_markdown(search)])
        print_search(search)
    table = as_markdown(ranked, record.main_metrics)
    comparison = _comparison(run.comparison, record, finished)
    if comparison != run.comparison:  # then an earlier one holds no longer
        tracking.set_verdicts(runs_folder, folder.path, {})
    run.change(comparison=comparison, result=f"{table}\n\n{ended}".strip())
    for best in ranked[:1]:
        run.log_metrics({best.monitor: best.quality, **best.test}, best.step)
        if search is not None:
            run.log_metrics(search.metrics(), best.step)

    if gave_up:
        run.finish("FAILED", _failures(gave_up, record.points))
    elif error is not None:
        run.finish("FAILED", error_sentence(error))
    own = {job.number for job in part.jobs()}
    _raise_failures([job for job in gave_up if job.number in own], record.points, error)


def _found_in_markdown(search: SearchResult) -> list[str]:
    """The trials and the best settings over seeds, as paragraphs."""
    paragraphs = [search.trials_line]
    best = [f"- `{line}`" for line in search.lines()]
    if best:
        paragraphs.append("\n".join(["**Best over seeds:**", "", *best]))
    return paragraphs


def _counts(gave_up: Sequence[JobRecord]) -> str:
    """`1 failed`, or `1 failed, 2 stopped`."""
    stopped = sum(job.status == "stopped" for job in gave_up)
    failed = f"{len(gave_up) - stopped} failed"
    return f"{failed}, {stopped} stopped" if stopped else failed


def _failures(gave_up: Sequence[JobRecord], points: int) -> str:
    """`2 of 8 jobs failed: dot, general`."""
    words = {job.status for job in gave_up}
    happened = "failed" if words == {"failed"} else "failed or were stopped"
    if words == {"stopped"}:
        happened = "were stopped"
    return f"{len(gave_up)} of {points} jobs {happened}: {', '.join(job.name for job in gave_up)}"


def _raise_failures(gave_up: Sequence[JobRecord], points: int, error: BaseException | None) -> None:
    """Raise ExperimentError where jobs did not finish; error: what Hydra raised."""
    if not gave_up:
        return
    problems = [f"{_failures(gave_up, points)}; what they say stands above"]
    # What Hydra stopped at outside of any job has not been said.
    if isinstance(error, ExperimentError) and not isinstance(error, JobFailedError):
        problems = [*error.problems, *problems]
    raise ExperimentError(problems) from error


def _comparison(
    earlier: str | None, record: SweepRecord, finished: Sequence[JobRecord]
) -> str | None:
    """The command that compares the points; what it wrote `earlier` stays while nothing is new."""
    has_news = any(job.new for job in finished)
    if not finished or (earlier is not None and not has_news):
        return earlier
    question = "**Which is better?** This command answers, and adds its answer here:"
    return "\n".join([question, "```sh", record.compare_command, "```"])


def _closing_line(record: SweepRecord, finished: Sequence[JobRecord]) -> str:
    """What a sweep prints when it ends, with the command that compares its points."""
    trained = [job for job in finished if job.new and job.start_of_sweep == record.started]
    line = (
        f"sweep {record.identity} ({record.name}): {len(finished)} of {record.points} points "
        f"finished, {len(trained)} of them trained now"
    )
    if not finished:
        return line

    return f"{line}; compare them: {record.compare_command}"


@contextmanager
def _job_environment(folder: SweepFolder, launcher: JobProcesses) -> Iterator[None]:
    """The environment of the jobs says which sweep they are of, and whom they must not outlive.

    Jobs that Slurm has may outlive their leader, also on the leader's machine.
    """
    variables = {FOLDER_VARIABLE: str(folder.path)}
    if launcher.on_this_machine:
        variables[LEADER_VARIABLE] = this_process()
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)


@contextmanager
def _terminable() -> Iterator[None]:
    """End the sweep on SIGTERM as on Ctrl-C.

    So its run is closed and its workers are stopped.
    """

    def end(number: int, frame: Any) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
