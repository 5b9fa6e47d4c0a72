"""What a sweep prints while it runs, and the ranking of its points at its end."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.table import Table

from attnlab.errors import ExperimentError
from attnlab.runs.search_result import SearchResult
from attnlab.runs.sweep_record import (
    OUTPUT,
    JobRecord,
    RankedJob,
    SweepFolder,
    heading,
    ranking,
    ranking_columns,
    shown_value,
)
from attnlab.runs.sweep_settings import JobProcesses
from attnlab.terminal import show_problems

_LOOK_INTERVAL = 1.0  # seconds
_SHARE_OF_PAUSES = 20.0  # times as long as a look
_FILE_WIDTH = 200  # characters of a line of the ranking, where no terminal shows it


@contextmanager
def showing_progress(
    folder: SweepFolder, runs_folder: Path, points: int, launcher: JobProcesses, start: float
) -> Iterator[None]:
    """Print where the output of the jobs goes, and a line for each job that ends.

    For example `dot · dates · seed 2: validation bleu 93.2, 0:01:05; sweep: 3 of 12 done, 2
    running, 0 failed, 0:04:10 left`.
    """
    is_over = threading.Event()

    def watch(terminal: TextIO) -> None:
        shown: set[int] = set()
        is_place_said = last_look = False
        pause = _LOOK_INTERVAL
        while not last_look:
            last_look = is_over.wait(pause)
            looked_at = time.monotonic()
            jobs = folder.jobs(start)
            # The records of ten thousand points take a second to read.
            pause = max(_LOOK_INTERVAL, _SHARE_OF_PAUSES * (time.monotonic() - looked_at))
            if jobs and not is_place_said:
                is_place_said = True
                place = Path(jobs[0].output).parent / "*" / OUTPUT
                print(f"what the points print: {place}", file=terminal)
            ended = [job for job in jobs if job.ended is not None and job.number not in shown]
            for job in sorted(ended, key=lambda job: job.ended or 0.0):
                shown.add(job.number)
                so_far = [each for each in jobs if each.ended is None or each.number in shown]
                state = line_of(so_far, points, launcher.workers, time.time())
                print(f"{line_of_point(job, runs_folder)}; {state}", file=terminal)
                if job.error is not None and not launcher.share_terminal:
                    show_problems([job.error], f"{job.name}: ", terminal)

    with _terminal() as terminal:
        thread = threading.Thread(
            target=watch, args=(terminal,), name="sweep progress", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


@contextmanager
def _terminal() -> Iterator[TextIO]:
    """The standard error stream as it is now: a job in this process sends its own to a file."""
    sys.stderr.flush()
    with os.fdopen(
        os.dup(2), "w", buffering=1, encoding="utf-8", errors="backslashreplace"
    ) as terminal:
        yield terminal


def line_of_point(job: JobRecord, runs_folder: Path) -> str:
    """`dot · dates · seed 2: validation bleu 93.2, 0:01:05`, or that it failed."""
    ended = job.started if job.ended is None else job.ended
    return (
        f"{job.name}: {_result(job, runs_folder)}, {timedelta(seconds=round(ended - job.started))}"
    )


def _result(job: JobRecord, runs_folder: Path) -> str:
    if job.gave_up:
        return job.status
    ranked: list[RankedJob] = []
    with suppress(ExperimentError):  # of a damaged file, which whoever reads it next reports
        ranked = ranking([job], runs_folder)
    if not ranked:
        return job.status
    value = f"{heading(ranked[0].monitor)} {ranked[0].quality:.4g}"
    return value if job.new else f"{value} (trained before)"


def line_of(jobs: Sequence[JobRecord], points: int, workers: int, now: float) -> str:
    """The state of a sweep, with an estimate of the time left.

    The estimate is based on the jobs that trained; those that were finished before take no time.
    """
    finished = [job for job in jobs if job.status == "finished"]
    running = [job for job in jobs if job.status == "running"]
    failed = [job for job in jobs if job.status == "failed"]
    stopped = [job for job in jobs if job.status == "stopped"]
    line = f"sweep: {len(finished)} of {points} done, {len(running)} running, {len(failed)} failed"
    if stopped:
        line += f", {len(stopped)} stopped"

    # A point that an earlier sweep had finished takes no time, so it says nothing about the others.
    # Nor does one that failed, or was stopped, in the middle.
    trained_seconds = [
        job.ended - job.started for job in finished if job.ended is not None and job.new
    ]
    remaining = points - len(finished) - len(failed) - len(stopped)
    if not remaining or not trained_seconds:
        return line
    mean = sum(trained_seconds) / len(trained_seconds)

    # Running jobs have a part of their time behind them.
    already_spent = sum(min(now - job.started, mean) for job in running)
    seconds_of_work = max(0.0, remaining * mean - already_spent)
    seconds_left = round(seconds_of_work / min(workers, remaining))
    return f"{line}, {timedelta(seconds=seconds_left)} left"


def print_ranking(
    ranked: Sequence[RankedJob], jobs: Sequence[JobRecord], main_metrics: Sequence[str]
) -> None:
    """A table of the points, the best by validation first.

    Points without a validation value come last, those that failed or were stopped after all others.

    ranked: the best first, points with equal values in the order of their numbers.
    jobs: all that ended.
    main_metrics: of the test split, those that a person looks at first.
    """
    if not jobs:
        return
    monitor = heading(ranked[0].monitor) if ranked else "validation"
    columns = ranking_columns(ranked, main_metrics)
    table = Table(title="Ranking by validation")
    table.add_column("", justify="right")
    table.add_column("point", overflow="fold")
    for name in (monitor, *(heading(column) for column in columns)):
        table.add_column(name, justify="right")

    for place, each in enumerate(ranked, start=1):
        values = [each.quality, *(each.test.get(name) for name in columns)]
        table.add_row(str(place), each.job.name, *map(shown_value, values))

    placed = {each.job.number for each in ranked}
    others = [job for job in jobs if job.number not in placed]
    for job in sorted(others, key=lambda job: (job.gave_up, job.number)):
        state = job.status if job.gave_up else "no value"
        table.add_row("–", job.name, state, *("–" for _ in columns))

    console = Console()
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    console.print(table)


def print_search(search: SearchResult) -> None:
    """How many trials a search has, and its best settings over seeds."""
    print(search.trials_line)
    for line in search.lines():
        print(f"best over seeds: {line}")
