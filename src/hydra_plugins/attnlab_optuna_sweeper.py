"""Optuna behind Hydra's sweeper interface: it asks for points, and is told what they returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hydra.core.utils import JobReturn
from omegaconf import OmegaConf

from hydra_plugins.attnlab_sweeper import LaunchingSweeper

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

    from attnlab.runs.places import Places, TakeNumbers
    from attnlab.runs.search_space import SearchSpace
    from attnlab.runs.search_storage import Trials
    from attnlab.runs.sweep_settings import Direction


class OptunaSweeper(LaunchingSweeper):
    """A search of `n_trials` settings, each trained with `seeds` seeds, `n_jobs` points at a time.

    sampler: Optuna's, or what makes one, given a seed.
    pruner: Optuna's, or what makes one, given the numbers of seeds and of objectives.
    direction: minimize or maximize, one for each objective.
    storage: the address of a database; null keeps the trials in memory.
    study_name: in the storage; null is the identity of the sweep.
    max_failure_rate: the search ends where more of the last points failed than this share of
        `n_jobs`; the last ones are `n_jobs` points.
    params: overrides that vary, beside those of the command.
    wait_for_batch: ask for points when all of a batch have ended, which takes as long as its
        slowest point; else as soon as a place is free.
    """

    def __init__(
        self,
        sampler: BaseSampler | partial[BaseSampler],
        pruner: BasePruner | Callable[..., BasePruner],
        direction: Direction | Sequence[Direction],
        storage: str | None,
        study_name: str | None,
        n_trials: int,
        n_jobs: int,
        max_failure_rate: float,
        params: dict[str, str] | None,
        seeds: int,
        wait_for_batch: bool = True,
    ) -> None:
        super().__init__(params)
        self._sampler, self._pruner = sampler, pruner
        self._directions: list[Direction] = []
        if isinstance(direction, str):
            self._directions = [direction]
        else:
            self._directions = list(direction)
        self._address, self._study_name = storage, study_name
        self._n_trials, self._n_jobs = n_trials, n_jobs
        self._max_failure_rate = max_failure_rate
        self._seeds = seeds
        self._waits_for_batch = wait_for_batch

    def sweep(self, arguments: list[str]) -> None:
        # Not at the top: Hydra imports all plug-ins at the start of every command.
        from attnlab.experiment.search_overrides import search_space
        from attnlab.runs.search import Search, seed_overrides
        from attnlab.runs.search_storage import storage_errors
        from attnlab.runs.sweep_numbers import PointNumbers

        assert self.config is not None
        self.write_config()
        space = search_space(self.parser().parse_overrides(self.overrides(arguments)))

        with storage_errors(self._address):
            trials = self._trials(space)
            numbers = PointNumbers.of_this_process(are_shared=trials.is_shared)

            seeds = seed_overrides(self._seeds, int(self.config.get("seed") or 0))
            search = Search(trials, space, seeds, self._n_jobs, self._max_failure_rate)
            self._write_result(trials, space)
            with self._places(numbers.take) as places:
                for _ in search.run(places):
                    self._write_result(trials, space)

    @contextmanager
    def _places(self, take_numbers: TakeNumbers) -> Iterator[Places]:
        """Where points run."""
        from attnlab.runs.places import Batches, Numbered, OneByOne
        from attnlab.runs.sweep_settings import job_processes

        def launch(points: list[list[str]]) -> Sequence[JobReturn]:
            return self.launcher.launch(points, initial_job_idx=take_numbers(points))

        assert self.config is not None
        is_one_process = job_processes(self.config.hydra.launcher, self._n_jobs).kind == "serial"
        if self._waits_for_batch or is_one_process:
            yield Batches(launch)
        elif hasattr(self.launcher, "places"):
            with self.launcher.places() as places:
                yield Numbered(places, take_numbers)
        else:
            yield Numbered(OneByOne(self.launcher.launch), take_numbers)

    def _trials(self, space: SearchSpace) -> Trials:
        """The trials of the study, which is opened, or made where there is none."""
        from optuna import logging
        from optuna.pruners import BasePruner

        from attnlab.runs.search_parts import prepared_sampler, wanted_trials
        from attnlab.runs.search_storage import Trials, open_storage, open_study
        from attnlab.runs.sweep_job import led_sweep

        # A sweep prints its own lines; warnings go where Hydra sends those of all libraries.
        logging.set_verbosity(logging.WARNING)
        logging.disable_default_handler()
        logging.enable_propagation()
        led = led_sweep()
        pruner = self._pruner
        if not isinstance(pruner, BasePruner):
            pruner = pruner(seeds=self._seeds, objectives=len(self._directions))
        storage = open_storage(self._address)
        study = open_study(
            storage,
            name=self._study_name or (led.path.name if led else "attnlab"),
            sampler=prepared_sampler(self._sampler, space),
            pruner=pruner,
            directions=self._directions,
            facts={
                "seeds": self._seeds,
                "objectives": self._objectives(),
                "sweep": None if led is None else led.path.name,
            },
        )
        return Trials(study, storage, wanted_trials(self._sampler, space, self._n_trials))

    def _objectives(self) -> list[str]:
        """What the points return, `quality` by the name of what training monitors."""
        assert self.config is not None
        names = OmegaConf.select(self.config, "sweep.objectives", default=["quality"])
        monitor = OmegaConf.select(self.config, "training.monitor", default="quality")
        return [str(monitor) if name == "quality" else str(name) for name in names]

    def _write_result(self, trials: Trials, space: SearchSpace) -> None:
        """Write what is found so far: as Hydra's users know it, and for the sweep's own run."""
        from attnlab.runs.search import result_of, results_of_hydra
        from attnlab.runs.sweep_job import led_sweep

        assert self.config is not None
        result = result_of(trials, space, self._objectives(), self._seeds)
        path = Path(self.config.hydra.sweep.dir) / "optimization_results.yaml"
        OmegaConf.save(OmegaConf.create(dict(results_of_hydra(result))), path)
        led = led_sweep()
        if led is not None:
            result.write(led.path)
