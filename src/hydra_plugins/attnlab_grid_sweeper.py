"""Every combination of the values of a sweep, also with the points of a file; or a part of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn

from attnlab.experiment.grid import grid, last_of_each_key, values_of
from attnlab.runs.sweep_job import led_sweep
from attnlab.runs.sweep_points import read_points
from attnlab.runs.sweep_record import JobRecord, SweepFolder
from attnlab.runs.sweep_settings import part_of
from hydra_plugins.attnlab_sweeper import LaunchingSweeper

_LOOK_INTERVAL = 1.0  # seconds
_SOON_COMPOSED = 64  # points, for which Hydra takes some twenty seconds


class GridSweeper(LaunchingSweeper):
    """Hydra's basic sweeper, which can also read points from a file, and take a part of the points.

    A point has the same number in each part as in the whole sweep.

    part: `3/8` is the third of eight parts; null is the whole.
    max_batch_size: points that the launcher is given at a time; null gives it all.
    params: overrides that vary, beside those of the command.
    listed: a file with points (see `read_points`), each to be combined with those of the command.
    """

    def __init__(
        self,
        part: str | None = None,
        max_batch_size: int | None = None,
        params: dict[str, str] | None = None,
        listed: str | None = None,
    ) -> None:
        super().__init__(params)
        self._part = part
        self._batch_size = max_batch_size
        self._listed = listed

    def sweep(self, arguments: list[str]) -> Any:
        listed = [[]] if self._listed is None else read_points(self._listed)
        points = grid(grid_values(self.parser(), self.overrides(arguments)), listed)
        numbers = part_of(self._part, len(points))

        self.write_config()
        led = led_sweep()
        if led is not None:
            led.write_points(points)
        returned: dict[int, JobReturn] = {}
        size = self._batch_size or max(1, len(numbers))
        for start in range(numbers.start, numbers.stop, size):
            batch = range(start, min(start + size, numbers.stop))
            returned |= self._launch(points, batch)
            held = self._held(led, batch)
            while held:
                for free in consecutive(self._wait_for_one(led, held)):
                    returned |= self._launch(points, free)
                held = self._held(led, batch)
            for number in batch:
                _ = returned[number].return_value  # raises what the job raised
        return [list(returned.values())]

    def _launch(self, points: Sequence[list[str]], numbers: range) -> dict[int, JobReturn]:
        batch = points[numbers.start : numbers.stop]
        if len(batch) > _SOON_COMPOSED:
            print(f"composes all {len(batch)} points before the first one starts", file=sys.stderr)
        self.validate_batch_is_legal(batch)
        jobs = self.launcher.launch(batch, initial_job_idx=numbers.start)
        return dict(zip(numbers, jobs, strict=True))

    def _held(self, sweep: SweepFolder | None, numbers: range) -> list[JobRecord]:
        """Jobs that have left their points to the processes that held them."""
        assert self.config is not None
        if sweep is None or not self.config.hydra.launcher.get("wait", True):
            return []
        jobs = sweep.part(numbers).jobs(sweep.read().started)
        return [job for job in jobs if job.status == "held"]

    def _wait_for_one(self, sweep: SweepFolder | None, held: Sequence[JobRecord]) -> list[int]:
        """The numbers of those points that no process holds any more, as soon as there is one.

        The leader waits, so that no job waits in its place, where it may cost money.
        """
        assert sweep is not None
        names = ", ".join(job.name for job in held)
        print(f"waits for other processes that train {names}", file=sys.stderr)
        while True:
            free = [job.number for job in held if sweep.is_point_free(job)]
            if free:
                return free
            time.sleep(_LOOK_INTERVAL)


def consecutive(numbers: Sequence[int]) -> list[range]:
    """Numbers in ascending order as ranges, which a launcher can start at once."""
    ranges: list[range] = []
    for number in numbers:
        if ranges and ranges[-1].stop == number:
            ranges[-1] = range(ranges[-1].start, number + 1)
        else:
            ranges.append(range(number, number + 1))
    return ranges


def grid_values(parser: OverridesParser, overrides: Sequence[str]) -> list[list[str]]:
    """Each override once for each of its values; the plan of the sweep has refused ranges."""
    counted = last_of_each_key(parser.parse_overrides(list(overrides)))
    return [values_of(override) for override in counted]
