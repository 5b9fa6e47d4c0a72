"""Every combination of the values of a sweep, also with the points of a file; or a part of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from attnlab.runs.sweep_points import combined, read_points
from attnlab.runs.sweep_settings import part_of
from hydra_plugins.attnlab_sweeper import LaunchingSweeper


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
        points = combinations(self.parser(), self.overrides(arguments))
        if self._listed is not None:
            points = combined(read_points(self._listed), points)
        numbers = part_of(self._part, len(points))

        self.write_config()
        returned = []
        size = self._batch_size or max(1, len(numbers))
        for start in range(numbers.start, numbers.stop, size):
            batch = points[start : min(start + size, numbers.stop)]
            self.validate_batch_is_legal(batch)
            jobs = self.launcher.launch(batch, initial_job_idx=start)
            for job in jobs:
                _ = job.return_value  # raises what the job raised
            returned.append(jobs)
        return returned


def combinations(parser: OverridesParser, overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of each point, in the order of Hydra's basic sweeper.

    Raises HydraException for a range without a number of values.
    """
    values: dict[str, list[str]] = {}
    for override in parser.parse_overrides(list(overrides)):
        key = override.get_key_element()
        if not override.is_sweep_override():
            values[key] = [f"{key}={override.get_value_element_as_str()}"]
        elif override.is_discrete_sweep():
            values[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
        else:
            assert override.value_type is not None
            raise HydraException(
                f"sweep=grid takes values and no {override.value_type.name.lower()}; choose "
                f"sweep=optuna for {override.input_line}"
            )
    return [list(point) for point in itertools.product(*values.values())]
