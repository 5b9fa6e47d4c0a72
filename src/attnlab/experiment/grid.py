"""The points of a grid: what the plan of a sweep counts and checks, and the sweeper launches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from hydra.core.override_parser.types import IntervalSweep, Override

from attnlab.errors import ExperimentError
from attnlab.runs.sweep_points import combined


def last_of_each_key(overrides: Iterable[Override]) -> list[Override]:
    """The overrides that count: of a key given twice the last one, in the place of the first."""
    last: dict[str, Override] = {}
    for override in overrides:
        last[override.get_key_element()] = override
    return list(last.values())


def check_grid(overrides: Iterable[Override]) -> None:
    """Raise ExperimentError for a range without a number of values."""
    for override in overrides:
        if override.is_sweep_override() and not override.is_discrete_sweep():
            assert override.value_type is not None
            kind = override.value_type.name.lower().removesuffix("_sweep")
            raise ExperimentError(
                f"sweep=grid takes values and no {kind}; choose sweep=optuna for "
                f"{override.input_line}"
            )


def values_of(override: Override) -> list[str]:
    """The override once for each value that a sweep gives it; for an interval once for each end."""
    key = override.get_key_element()
    if not override.is_sweep_override():
        # `~key`, which deletes, has no value.
        is_bare = override.is_delete() and "=" not in str(override.input_line)
        return [key if is_bare else f"{key}={override.get_value_element_as_str()}"]
    value = override.value()
    if isinstance(value, IntervalSweep):
        return [f"{key}={value.start}", f"{key}={value.end}"]
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def grid(values: Sequence[Sequence[str]], listed: Sequence[list[str]] = ([],)) -> list[list[str]]:
    """Every combination of the values, each with each listed point; equal points count once.

    The last override varies fastest, as with Hydra's basic sweeper.
    """
    points = [list(point) for point in itertools.product(*values)]
    return combined(list(listed), points)
