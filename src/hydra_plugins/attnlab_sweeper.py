"""What our sweepers have in common: they find points by themselves, and launch them in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf


class LaunchingSweeper(Sweeper):
    """A sweeper that has a launcher, and writes down the config of the sweep.

    params: overrides that vary, beside those of the command.
    """

    def __init__(self, params: Mapping[str, str] | None) -> None:
        self._params = params or {}

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.config = config
        self.hydra_context = hydra_context
        self.launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def parser(self) -> OverridesParser:
        """Of overrides, which knows the groups of the config."""
        assert self.hydra_context is not None
        return OverridesParser.create(config_loader=self.hydra_context.config_loader)

    def overrides(self, arguments: Sequence[str]) -> list[str]:
        """Those of the node, and then those of the command, which go before."""
        return [*(f"{key}={value}" for key, value in self._params.items()), *arguments]

    def write_config(self) -> None:
        """Write the config of the sweep into its folder, as Hydra's own sweepers do."""
        assert self.config is not None
        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.config, folder / "multirun.yaml")
