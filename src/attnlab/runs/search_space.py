"""The space of `sweep=optuna`: what varies from trial to trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from attnlab.errors import ExperimentError

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


def _text(value: Any, distribution: BaseDistribution) -> str:
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        return repr(round(value, _DIGITS_OF_A_STEP))
    return str(value)
