"""The space of `sweep=optuna`, from overrides such as `model.encoder.dropout=interval(0,0.5)`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from attnlab.errors import ExperimentError
from attnlab.runs.search_space import SearchSpace

_LOG = "log"


def search_space(overrides: Iterable[Override]) -> SearchSpace:
    """The space of parsed overrides, of which the last one of a key counts.

    Raises ExperimentError for every interval, range or tag that no search can use.
    """
    varied: dict[str, BaseDistribution] = {}
    fixed: dict[str, str] = {}
    problems = []
    for override in overrides:
        key = override.get_key_element()
        varied.pop(key, None)
        fixed.pop(key, None)
        if not override.is_sweep_override():
            # `~key`, which deletes, has no value.
            is_bare = override.is_delete() and "=" not in str(override.input_line)
            value = "" if is_bare else f"={override.get_value_element_as_str()}"
            fixed[key] = f"{key}{value}"
            continue
        try:
            varied[key] = _distribution(override)
        except ValueError as error:
            name, _, text = str(override.input_line).partition("=")
            problems.append(f"{name} {error}, got {text}")
    if problems:
        raise ExperimentError(problems)
    return SearchSpace(varied, fixed)


def _distribution(override: Override) -> BaseDistribution:
    """What a trial draws a value from.

    Raises ValueError with the rest of a sentence that begins with the key.
    """
    value = override.value()
    unknown = sorted(getattr(value, "tags", set()) - {_LOG})
    if unknown:
        raise ValueError(f"must have the tag {_LOG} or none")
    if isinstance(value, IntervalSweep):
        return _interval(value)
    if isinstance(value, RangeSweep) and not value.shuffle:
        return _range(value)

    if _LOG in getattr(value, "tags", set()):
        raise ValueError(f"must be an interval or a range for the tag {_LOG}")
    # As text, in which quotes and lists stay as the command has them.
    choices = list(dict.fromkeys(override.sweep_string_iterator()))
    if not choices:
        raise ValueError("must have a value to choose")
    return CategoricalDistribution(choices)


def _interval(value: IntervalSweep) -> BaseDistribution:
    start, end = value.start, value.end
    assert start is not None
    assert end is not None
    is_log = _LOG in value.tags
    if not start < end:
        raise ValueError("must be an interval that starts below its end")
    if is_log and start <= 0:
        raise ValueError("must be an interval above 0 for the tag log")
    if isinstance(start, int) and isinstance(end, int):  # int(interval(1,8)), both ends included
        return IntDistribution(start, end, log=is_log)
    return FloatDistribution(float(start), float(end), log=is_log)


def _range(value: RangeSweep) -> BaseDistribution:
    """As in a grid, `range(1,10,2)` is 1, 3, 5, 7, 9: it ends before its stop."""
    values: list[Any] = list(value.range())
    if not values:
        raise ValueError("must be a range with a value in it")
    low, high = min(values), max(values)
    is_log = _LOG in value.tags
    if is_log and (low <= 0 or abs(value.step) != 1 or not isinstance(low, int)):
        raise ValueError("must be a range of whole numbers above 0, each of them, for the tag log")
    if all(isinstance(each, int) for each in values):
        return IntDistribution(low, high, log=is_log, step=abs(int(value.step)))
    return FloatDistribution(float(low), float(high), step=abs(float(value.step)))
