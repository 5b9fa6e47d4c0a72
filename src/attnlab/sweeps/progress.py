"""How a sweep stands, in one line."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from rich.console import Console
from rich.live import Live
from rich.text import Text

from attnlab.sweeps.record import JobRecord, SweepFolder

_INTERVAL = 1.0  # seconds


class SweepProgress:
    """Writes `sweep: 3 of 12 done, 2 running, 0 failed, 4 min left` as jobs come and go.

    One line that stays, on a terminal that the jobs leave alone; else a line whenever a job ends.
    """

    def __init__(self, folder: SweepFolder, points: int, workers: int, start: float, live: bool) -> None:
        self._folder, self._points, self._workers, self._start = folder, points, workers, start
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False) if live and self._console.is_terminal else None
        self._said = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sweep progress", daemon=True)

    def __enter__(self) -> SweepProgress:
        if self._live is not None:
            self._live.start()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        self._show()
        if self._live is not None:
            self._live.stop()

    def _watch(self) -> None:
        while not self._ended.wait(_INTERVAL):
            self._show()

    def _show(self) -> None:
        jobs = self._folder.jobs(self._start)
        line = line_of(jobs, self._points, self._workers, time.time())
        if self._live is not None:
            self._live.update(Text(line), refresh=True)
        elif (ended := str(sum(job.ended is not None for job in jobs))) != self._said and ended != "0":
            self._said = ended
            self._console.print(line, highlight=False, soft_wrap=True)


def line_of(jobs: Sequence[JobRecord], points: int, workers: int, now: float) -> str:
    """The line, and the time left as the jobs that trained took it; those that were finished before take none."""
    count = {status: sum(job.status == status for job in jobs) for status in ("finished", "running", "failed")}
    line = f"sweep: {count['finished']} of {points} done, {count['running']} running, {count['failed']} failed"
    took = [job.ended - job.started for job in jobs if job.ended is not None and job.new]
    left = points - count["finished"] - count["failed"]
    if left and took:
        mean = sum(took) / len(took)
        spent = sum(min(now - job.started, mean) for job in jobs if job.status == "running")
        line += f", {duration(max(0.0, left * mean - spent) / min(workers, left))} left"
    return line


def duration(seconds: float) -> str:
    """`40 s`, `4 min`, `2 h 10 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
