"""How a sweep stands, read from its folder and from Slurm, by a process that does not lead it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from attnlab.runs.search_result import SearchResult
from attnlab.runs.slurm_jobs import SweepOnSlurm
from attnlab.runs.sweep_claims import is_claimed
from attnlab.runs.sweep_leaders import leaders_of
from attnlab.runs.sweep_record import JobRecord, SweepFolder, SweepRecord

FINISHED, FAILED, RUNNING, QUEUED = "finished", "failed", "running", "queued"
STOPPED, WAITING = "stopped", "not started"
HELD = "held"  # by a process that is none of the sweep, or an earlier one
PRUNED = "pruned"  # a training that a search over seeds does without


@dataclass(frozen=True)
class PointState:
    """How a point stands.

    job: its record; None where it never started.
    slurm: the id of its job on Slurm, and the state there; None where Slurm has none.
    """

    number: int
    state: str
    job: JobRecord | None
    slurm: tuple[str, str] | None

    @property
    def since(self) -> timedelta | None:
        """How long it ran, or has run; None where it never started, or nobody saw it end."""
        if self.job is None or (self.state == STOPPED and self.job.ended is None):
            return None
        ended = time.time() if self.job.ended is None else self.job.ended
        return timedelta(seconds=round(ended - self.job.started))


@dataclass(frozen=True)
class SweepState:
    """How a sweep stands.

    leaders: how many processes lead it, or a part of it.
    slurm_is_silent: whether Slurm was given jobs of it, and does not say which of them it has. The
        points then stand as their records say.
    """

    record: SweepRecord
    points: list[PointState]
    leaders: int
    slurm_is_silent: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether a process leads it, or Slurm has jobs of it, as far as that is known."""
        if self.slurm_is_silent and self.unfinished:
            return True
        return self.leaders > 0 or any(point.slurm for point in self.points)

    @property
    def unfinished(self) -> int:
        """The points that must still be trained."""
        return sum(point.state not in (FINISHED, PRUNED) for point in self.points)

    @property
    def counts(self) -> dict[str, int]:
        """{state: points}, the most advanced state first; states that no point has are left out."""
        found = Counter(point.state for point in self.points)
        order = (FINISHED, FAILED, RUNNING, QUEUED, HELD, STOPPED, PRUNED, WAITING)
        return {state: found[state] for state in order if found[state]}


def state_of(folder: SweepFolder) -> SweepState:
    """How a sweep stands now."""
    record = folder.read()
    jobs = {job.number: job for job in folder.jobs()}
    leaders = len(leaders_of(folder.path))
    on_slurm = SweepOnSlurm(folder).states()
    missing = _missing(jobs, record.points)
    spared = _spared(folder, missing)
    points = []
    for number in sorted({*jobs, *missing}):
        job, slurm = jobs.get(number), (on_slurm or {}).get(number)
        state = _state(job, slurm, leaders > 0, record)
        if number in spared:
            state = PRUNED
        # The last job of a sweep also runs the points of others, which Slurm does not know of.
        is_lost = state == STOPPED and job is not None and job.status == RUNNING
        if is_lost and (on_slurm is None or is_claimed(folder, number)):
            state = RUNNING
        points.append(PointState(number, state, job, slurm))
    return SweepState(record, points, leaders, slurm_is_silent=on_slurm is None)


def _missing(jobs: Collection[int], points: int) -> list[int]:
    """The numbers of the points that never started.

    A point of a search whose leader died has another number than it had, maybe one beyond the last.
    """
    missing = [number for number in range(points) if number not in jobs]
    renumbered = max(0, len(missing) + len(jobs) - points)
    return missing[renumbered:]


def _spared(folder: SweepFolder, missing: Sequence[int]) -> set[int]:
    """Those of the missing points that pruning made needless.

    A search gives its points numbers one after the other, so they are at the end.
    """
    search = SearchResult.read(folder.path)
    if search is None:
        return set()
    return set(missing[max(0, len(missing) - search.spared) :])


def _state(
    job: JobRecord | None, slurm: tuple[str, str] | None, is_led: bool, record: SweepRecord
) -> str:
    """How a point stands, given its record, and the id and the state of its job on Slurm."""
    if job is not None and job.status == RUNNING:
        return RUNNING if slurm or is_led else STOPPED
    on_slurm = None if slurm is None else slurm[1]
    if job is not None and _has_ended(job, on_slurm, record):
        return job.status
    if on_slurm is not None:
        return RUNNING if on_slurm == "RUNNING" else QUEUED
    # What an earlier start did not finish is tried again in this one.
    if job is None or (is_led and job.gave_up):
        return WAITING
    return job.status


def _has_ended(job: JobRecord, on_slurm: str | None, record: SweepRecord) -> bool:
    """Whether a job has done with its point; it stays on Slurm for some seconds, or for another."""
    if job.ended_in(record.started):
        return True
    if job.status == HELD:
        return job.start_of_sweep == record.started
    return job.status == FINISHED and on_slurm in ("RUNNING", "COMPLETING")
