"""Samplers and pruners of `sweep=optuna`, by the names that the section `sweep` has for them."""

from __future__ import annotations

import functools
import hashlib
import math
import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner, MedianPruner, NopPruner, PercentilePruner, WilcoxonPruner
from optuna.samplers import (
    BaseSampler,
    CmaEsSampler,
    GPSampler,
    GridSampler,
    NSGAIIISampler,
    NSGAIISampler,
    QMCSampler,
    RandomSampler,
    TPESampler,
)
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from attnlab.errors import ExperimentError
from attnlab.runs.search_space import SearchSpace

_SAMPLERS: dict[str, Callable[..., BaseSampler]] = {
    "tpe": TPESampler,
    "random": RandomSampler,
    "gp": GPSampler,
    "cmaes": CmaEsSampler,
    "nsgaii": NSGAIISampler,
    "nsgaiii": NSGAIIISampler,
    "qmc": QMCSampler,
    "grid": GridSampler,
}
# Their points are numbered in an order that follows from the seed.
_OF_ONE_SEED = (QMCSampler, GridSampler)
_WITH_START = ("tpe", "gp", "cmaes")
_LARGEST_SEED = 2**32


@contextmanager
def without_notices() -> Iterator[None]:
    """Without Optuna's notices that a part may change in another version, and of heartbeats.

    The version is chosen by our requirements, and the heartbeats that asking does not send are sent
    by `Trials`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        warnings.filterwarnings("ignore", message="Heartbeat of storage is supposed to be used")
        yield


def named_sampler(
    name: str, seed: int, n_startup_trials: int | None = None
) -> functools.partial[BaseSampler]:
    """The sampler that `sweep.sampler` names; another seed can be put into it.

    n_startup_trials: by chance, before the sampler looks at what it has found; None is its own.

    Raises ExperimentError for a sampler that does not begin in this way.
    """
    if n_startup_trials is None:
        return functools.partial(_SAMPLERS[name], seed=seed)
    if name not in _WITH_START:
        raise ExperimentError(
            f"hydra.sweeper.sampler.n_startup_trials must be null with sweep.sampler={name}, got "
            f"{n_startup_trials}; {', '.join(_WITH_START)} have such trials"
        )
    return functools.partial(_SAMPLERS[name], seed=seed, n_startup_trials=n_startup_trials)


def named_pruner(name: str | None, seeds: int, objectives: int) -> BasePruner:
    """The pruner that `sweep.pruner` names.

    null: the median pruner where there is something to prune, which is one objective over several
        seeds.
    """
    if name is None:
        name = "median" if seeds > 1 and objectives == 1 else "none"
    if name == "median":
        return MedianPruner()
    if name == "percentile":
        return PercentilePruner(25.0)
    if name == "wilcoxon":
        with without_notices():
            return WilcoxonPruner()
    return NopPruner()


def prepared_sampler(
    given: BaseSampler | functools.partial[BaseSampler], space: SearchSpace
) -> BaseSampler:
    """The sampler of a study.

    given: a sampler, which is used as it is, or what makes one, with a seed or without.

    Raises ExperimentError for a space that it cannot search.
    """
    if isinstance(given, BaseSampler):
        return given
    # Hydra's own kind of partial hides what it makes where it is made partial again.
    given = functools.partial(given.func, *given.args, **given.keywords)
    if given.func is GridSampler:
        given = functools.partial(given, space.grid())
    seed = given.keywords.get("seed")
    if given.func in _OF_ONE_SEED:
        # Leaders that share a search must see the same points in it, also without a seed.
        whole = _made(functools.partial(given, seed=seed or 0))
        return SeededByTrial(lambda number: whole)
    if seed is None:
        seed = secrets.randbelow(_LARGEST_SEED)
    return SeededByTrial(lambda number: _made(functools.partial(given, seed=mixed(seed, number))))


def _made(factory: Callable[[], BaseSampler]) -> BaseSampler:
    try:
        with without_notices():
            return factory()
    except ImportError as error:
        raise ExperimentError(
            f"sweep.sampler needs the package {error.name}: pip install {error.name}"
        ) from error


def mixed(seed: int, number: int) -> int:
    """A seed for a trial, from that of the search and the trial's number."""
    digest = hashlib.sha256(f"{seed} {number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % _LARGEST_SEED


class SeededByTrial(BaseSampler):
    """A sampler whose random numbers follow from the seed and from the number of the trial.

    So a search that goes on does not draw the numbers of its first trials again, and of several
    leaders no two draw the same.

    make: makes the sampler of the trial with a number.
    """

    def __init__(self, make: Callable[[int], BaseSampler]) -> None:
        self._make = make
        self._sampler = make(0)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._sampler = self._make(trial.number)
        self._sampler.before_trial(study, trial)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return self._sampler.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        # After its last point a grid stops `Study.optimize`, which runs no search of ours.
        if not isinstance(self._sampler, GridSampler):
            self._sampler.after_trial(study, trial, state, values)


def wanted_trials(given: Any, space: SearchSpace, trials: int) -> int:
    """How many trials a search has at most: a grid has no more than its points.

    given: as in `prepared_sampler`.
    """
    is_grid = isinstance(given, functools.partial) and given.func is GridSampler
    if not is_grid:
        return trials
    return min(trials, math.prod(len(values) for values in space.grid().values()))
