"""The space of `sweep=optuna`, from overrides such as `model.encoder.dropout=interval(0,0.5)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from attnlab.errors import ExperimentError

_LOG = "log"
# Steps of floats add up to numbers such as 0.30000000000000004, which nobody typed.
_DIGITS_OF_A_STEP = 12


@dataclass(frozen=True)
class SearchSpace:
    """What varies from trial to trial, and what does not.

    varied: by key, as the override has it, a `+` in front included.
    fixed: overrides that every trial has.
    """

    varied: dict[str, BaseDistribution]
    fixed: dict[str, str]

    @classmethod
    def of(cls, overrides: Iterable[Override]) -> SearchSpace:
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
        return cls(varied, fixed)

    def overrides(self, values: Mapping[str, Any]) -> list[str]:
        """The overrides of the point with these values of what varies."""
        chosen = [f"{key}={_text(values[key], self.varied[key])}" for key in self.varied]
        return [*chosen, *self.fixed.values()]

    def grid(self) -> dict[str, list[Any]]:
        """All values of each key.

        Raises ExperimentError for an interval of floats, which has no end of them.
        """
        values: dict[str, list[Any]] = {}
        problems = []
        for key, distribution in self.varied.items():
            if isinstance(distribution, CategoricalDistribution):
                values[key] = list(distribution.choices)
            elif isinstance(distribution, IntDistribution):
                last = distribution.high
                values[key] = list(range(distribution.low, last + 1, distribution.step))
            else:
                assert isinstance(distribution, FloatDistribution)
                if distribution.step is None:
                    problems.append(
                        f"{key} must be a choice(...) or a range(...) for the sampler grid, got an "
                        "interval"
                    )
                    continue
                steps = round((distribution.high - distribution.low) / distribution.step)
                values[key] = [
                    distribution.low + number * distribution.step for number in range(steps + 1)
                ]
        if problems:
            raise ExperimentError(problems)
        return values


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


def _text(value: Any, distribution: BaseDistribution) -> str:
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        return repr(round(value, _DIGITS_OF_A_STEP))
    return str(value)
