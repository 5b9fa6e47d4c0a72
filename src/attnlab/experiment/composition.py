"""Composing an experiment outside of a command of Hydra's: `compose(["data=copy", "seed=2"])`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from attnlab.errors import ExperimentError
from attnlab.experiment.rewording import CONF, is_of_hydra, sentence
from attnlab.sweeps.directions import directions

if TYPE_CHECKING:
    from attnlab.experiment.experiment import Experiment

# Which way a sweep's objectives are better depends on what training monitors.
OmegaConf.register_new_resolver("directions", directions, replace=True)


def compose(overrides: Sequence[str] = (), folder: Path = CONF, name: str = "config") -> Experiment:
    """The experiment that these overrides compose; raises ExperimentError with every problem."""
    from attnlab.experiment.experiment import check

    return check(compose_config(overrides, folder, name))


def compose_config(overrides: Sequence[str] = (), folder: Path = CONF, name: str = "config") -> DictConfig:
    """The composed config with its `hydra` node, not yet checked; raises ExperimentError where it cannot be composed."""
    with hydra.initialize_config_dir(str(folder.resolve()), version_base="1.3"):
        return composed_here(overrides, name)


def composed_here(overrides: Sequence[str], name: str) -> DictConfig:
    """As `compose_config`, within Hydra as it is set up just now: in a running command."""
    try:
        return hydra.compose(name, list(overrides), return_hydra_config=True)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        if not is_of_hydra(error):
            raise
        raise ExperimentError(sentence(error)) from error
