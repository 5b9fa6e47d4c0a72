"""Jobs of a sweep that share its points: a job whose point is taken trains the next free one."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import chdir, suppress
from typing import Any, Protocol, cast

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import run_job
from hydra.types import HydraContext
from hydra.utils import instantiate
from omegaconf import DictConfig, open_dict

from attnlab.errors import JobFailedError
from attnlab.runs.slurm_jobs import SweepOnSlurm
from attnlab.runs.sweep_claims import Claims, PointHeldError
from attnlab.runs.sweep_job import shared_sweep, sweep_of_job_without_leader
from attnlab.runs.sweep_leaders import Leaders, leaders_of
from attnlab.runs.sweep_record import SweepFolder
from attnlab.terminal import echo


class RunPoint(Protocol):
    """Runs the point of a job, whose config Hydra has composed.

    Raises JobFailedError where it fails, and PointHeldError where another process works on it,
    unless it waits.
    """

    def __call__(self, config: DictConfig, *, waits: bool) -> Any: ...


def run_shared(run_point: RunPoint, config: DictConfig) -> Any:
    """Run the point of this job, or the next free one where another process works on it.

    The last job of a sweep that nobody leads then runs what is left: points whose processes died,
    and those that were held, for which it waits.

    Returns what the point of this job returns; None where another process ran it.
    """
    sweep = shared_sweep()
    if sweep is None:
        return run_point(config, waits=True)

    points = SharedPoints(sweep, run_point)
    returned, failure = None, None
    try:
        try:
            returned = points.run_own_or_next(config)
        except JobFailedError as error:  # no reason to leave others
            failure = error
        points.run_what_is_left()
    finally:
        points.claims.give_all_back()
    if failure is not None:
        raise failure
    return returned


class SharedPoints:
    """The points of a sweep, as one of its jobs sees and takes them."""

    def __init__(self, sweep: SweepFolder, run_point: RunPoint) -> None:
        self.claims = Claims(sweep)
        self._sweep, self._run_point = sweep, run_point
        self._own: int = HydraConfig.get().job.num
        self._start = sweep.read().started

    def run_own_or_next(self, config: DictConfig) -> Any:
        """Run the point of this job, unless another job has done so; the next one if it is held."""
        if not self.claims.take(self._own):
            return self._run_next()
        own = self._sweep.job(self._own)
        if own is not None and own.status == "finished" and own.start_of_sweep == self._start:
            return None  # by a job that took it as its next one
        try:
            return self._run_point(config, waits=False)
        except PointHeldError:
            return self._run_next()

    def _run_next(self) -> None:
        """Run the first point after this job's own that no process has begun."""
        for number in self._not_begun():
            if not self.claims.take(number):
                continue
            try:
                if self._is_begun(number):  # meanwhile
                    continue
                echo(f"point {self._own} is held by another process; this job takes {number}")
                self._run_other(number, waits=False)
                return
            except PointHeldError:
                continue
            finally:
                self.claims.give_back(number)
        echo(f"point {self._own} is held by another process, and no other point is free")

    def _not_begun(self) -> Iterator[int]:
        points = len(self._sweep.points() or [])
        begun = {job.number for job in self._sweep.jobs(self._start)}
        for number in (*range(self._own + 1, points), *range(self._own)):
            if number not in begun:
                yield number

    def _is_begun(self, number: int) -> bool:
        job = self._sweep.job(number)
        return job is not None and job.start_of_sweep == self._start

    def run_what_is_left(self) -> None:
        """Run the points that are left, if this is the last job, and no process leads the sweep."""
        while True:
            # Jobs leave one after the other, so that one of them is the last.
            with Leaders(self._sweep.path, None).at_the_gate():
                left = self._left()
                if not left:
                    self.claims.give_all_back()
                    return
                for number in left:
                    self.claims.take(number)
            for number in left:
                echo(f"point {number} is left, and this is the last job of the sweep: it runs it")
                with suppress(JobFailedError):  # its record says so
                    self._run_other(number, waits=True)
                self.claims.give_back(number)

    def _left(self) -> list[int]:
        """The points without a process to run them; none where this job is not the last."""
        may_lack_leader = sweep_of_job_without_leader() is not None
        if not may_lack_leader or leaders_of(self._sweep.path):
            return []
        if self.claims.of_others() or self._are_others_on_slurm():
            return []
        return [job.number for job in self._sweep.jobs() if job.status in ("running", "held")]

    def _are_others_on_slurm(self) -> bool:
        """Whether Slurm has a job of this sweep that will come to its end after this one."""
        # A controller that does not answer holds nobody up: two jobs cannot have one point.
        states = SweepOnSlurm(self._sweep).states() or {}
        for number, (_, state) in states.items():
            job = self._sweep.job(number)
            has_left = job is not None and job.status != "running"
            is_leaving = has_left and state in ("RUNNING", "COMPLETING")
            if number != self._own and not is_leaving:
                return True
        return False

    def _run_other(self, number: int, waits: bool) -> Any:
        """Run another point than this job's in its own output folder, as Hydra runs a job."""
        points = self._sweep.points()
        assert points is not None
        loader = GlobalHydra.instance().config_loader()
        hydra, master = HydraConfig.get(), HydraConfig.instance().cfg
        assert master is not None
        # Hydra writes into the job's config where it is composed, and relative paths count from
        # there.
        with chdir(hydra.runtime.cwd):
            config = loader.load_sweep_config(cast(DictConfig, master), points[number])
            with open_dict(config):
                config.hydra.job.id = f"{hydra.job.name}_{number}"
                config.hydra.job.num = number
                config.hydra.sweep.dir = str(hydra.sweep.dir)
            callbacks: Any = _JobCallbacks(config)
            ended = run_job(
                hydra_context=HydraContext(config_loader=loader, callbacks=callbacks),
                task_function=functools.partial(self._run_point, waits=waits),
                config=config,
                job_dir_key="hydra.sweep.dir",
                job_subdir_key="hydra.sweep.subdir",
            )
        return ended.return_value  # raises what the job raised


class _JobCallbacks:
    """The callbacks of a config, as far as Hydra calls them around a job."""

    def __init__(self, config: DictConfig) -> None:
        self._callbacks = [instantiate(node) for node in config.hydra.callbacks.values()]

    def on_job_start(self, **given: Any) -> None:
        for callback in self._callbacks:
            callback.on_job_start(**given)

    def on_job_end(self, **given: Any) -> None:
        for callback in reversed(self._callbacks):
            callback.on_job_end(**given)
