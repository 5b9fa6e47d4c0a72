"""A search of Optuna, as a multirun plans it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hydra.core.override_parser.types import Override
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig

from attnlab.errors import ExperimentError

SEED = "seed"


@dataclass(frozen=True)
class PlannedSearch:
    """A search of our sweeper.

    seeds: of each trial.
    storage: its address; None for memory.
    study: its name in the storage; None for the sweep's identity.
    """

    trials: int
    seeds: int
    storage: str | None
    study: str | None


def planned_search(node: DictConfig, overrides: Sequence[Override], seed: int) -> PlannedSearch:
    """The search of a sweeper's node, whose settings are checked.

    seed: of the experiment.

    Raises ExperimentError where the command gives a seed beside those of each trial, or a range
    that the sampler cannot search.
    """
    seeds, keys = int(node.seeds), [override.get_key_element() for override in overrides]
    if seeds > 1 and SEED in keys:
        trained = f"{seed} to {seed + seeds - 1}"
        raise ExperimentError(
            f"{SEED} must be left out with sweep.seeds={seeds}, which trains each setting with the "
            f"seeds {trained}; got {overrides[keys.index(SEED)].input_line}"
        )

    from attnlab.experiment.search_overrides import search_space
    from attnlab.runs.search_parts import prepared_sampler, wanted_trials  # imports Optuna

    space = search_space(overrides)
    try:
        sampler = instantiate(node.sampler)
    except InstantiationException as error:
        if isinstance(error.__cause__, ExperimentError):
            raise error.__cause__ from None
        raise
    prepared_sampler(sampler, space)  # whatever it lacks is said before the sweep's run begins
    return PlannedSearch(
        trials=wanted_trials(sampler, space, int(node.n_trials)),
        seeds=seeds,
        storage=node.storage,
        study=node.study_name,
    )
