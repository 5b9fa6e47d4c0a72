"""The config as Hydra composes it, and every mistake in it as a sentence, all of them together."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, IntervalSweep, Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from attnlab.config.secrets import told_override
from attnlab.errors import ExperimentError, show
from attnlab.experiment.choices import CONF
from attnlab.experiment.hydra_node import hydra_problems, overrides_problems
from attnlab.experiment.inside_hydra import composed_by, settle_in
from attnlab.experiment.override_problems import (
    Groups,
    already_set,
    config_sentence,
    unknown_key,
    unknown_setting,
    unreadable,
)
from attnlab.files import check_writable, parse_yaml
from attnlab.sweeps.directions import directions

if TYPE_CHECKING:
    from attnlab.experiment.experiment import Experiment
    from attnlab.experiment.sweep_plan import SweepPlan


# Which way a sweep's objectives are better depends on what training monitors.
OmegaConf.register_new_resolver("directions", directions, replace=True)

# Of a larger grid only the values are tried, one by one, and not their combinations.
LARGEST_CHECKED_GRID = 64


def compose_config(directory: Path, name: str, overrides: list[str]) -> DictConfig:
    """The composed config with its `hydra` node; raises ExperimentError with every problem of the composition."""
    with ConfigSource(directory, name) as source:
        config, problems = source.compose(overrides)
    if problems:
        raise ExperimentError(problems)
    return config


class ConfigSource:
    """A folder of config files, and one in it that is composed with overrides.

    extra: one more folder, that goes before the first (Hydra's --config-dir).
    """

    def __init__(self, directory: Path, name: str, extra: Path | None = None) -> None:
        for folder in (directory, extra):
            if folder is not None and not folder.is_dir():
                raise ExperimentError(f"the config folder {folder} does not exist; give one that does, such as {CONF}")
        self.directory, self.name, self.extra = directory.resolve(), name, extra

    def __enter__(self) -> ConfigSource:
        settle_in()
        search_path = create_config_search_path(str(self.directory))
        if self.extra is not None:
            search_path.prepend("command-line", f"file://{self.extra}", anchor=SearchPathQuery(provider="schema"))
        GlobalHydra.instance().clear()
        self.loader = Hydra.create_main_hydra2("check", search_path).config_loader
        self.groups = Groups(self.loader)
        return self

    def __exit__(self, *error: object) -> None:
        GlobalHydra.instance().clear()

    def compose(self, overrides: list[str]) -> tuple[DictConfig, list[str]]:
        """The config, and what is wrong with the overrides; it is composed without those that are wrong.

        Raises ExperimentError where the config cannot be composed even so.
        """
        kept: list[tuple[str, Override]] = []
        problems: list[str] = []
        for text, override in self._parsed(overrides, problems):
            found = self.groups.problem(override)
            if found:
                problems.append(found)
            else:
                kept.append((text, override))
        unknown = []
        while True:
            try:
                config = composed_by(self.loader, self.name, [text for text, _ in kept])
                break
            except ExperimentError as error:
                raise ExperimentError([*problems, *error.problems]) from None
            except (HydraException, OmegaConfBaseException) as error:
                key, is_set = unknown_key(error), already_set(error)
                rest = [pair for pair in kept if pair[1].key_or_group not in (key, is_set)]
                if len(rest) == len(kept):
                    raise ExperimentError([*problems, config_sentence(error)]) from error
                if key is not None:
                    unknown.append(key)
                else:
                    problems.append(f"{is_set} is in the config already; write {is_set}=... without the plus sign")
                kept = rest
            except Exception as error:
                # What yaml and OmegaConf stumble over is of any kind, and seldom says in which file.
                raise ExperimentError([*problems, self._broken_file() or self._stumble(kept, error)]) from error
        problems += overrides_problems(config, [text for text, _ in kept])
        return config, problems + [unknown_setting(key, config) for key in unknown]

    def check(self, overrides: list[str]) -> Experiment:
        """The experiment that these overrides compose; raises ExperimentError with every problem."""
        from attnlab.experiment.experiment import check

        config, problems = self.compose(overrides)
        problems += hydra_problems(config)
        try:
            experiment = check(config, build=not problems)
        except ExperimentError as error:
            places = {problem.split(" ", 1)[0].rstrip(":") for problem in error.problems}
            # What Hydra's node only takes over from a setting with a problem of its own is told there.
            first = [problem for problem in problems if not any(f"${{{place}}}" in problem for place in places)]
            raise ExperimentError(list(dict.fromkeys([*first, *error.problems]))) from error
        if problems:
            raise ExperimentError(problems)
        _check_output_folder(config)
        return experiment

    def check_composition(self, overrides: list[str]) -> None:
        """Check no more than the overrides and Hydra's own node, which costs no heavy import."""
        config, problems = self.compose(overrides)
        problems += hydra_problems(config)
        if problems:
            raise ExperimentError(problems)

    def check_sweep(self, overrides: list[str]) -> SweepPlan:
        """Check every point of a sweep, the ends of its ranges too, before its first job starts."""
        from attnlab.experiment.sweep_plan import SweepPlan

        problems: list[str] = []
        parsed = self._parsed(overrides, problems)
        if problems:
            raise ExperimentError(problems)
        fixed = [text for text, override in parsed if not override.is_sweep_override()]
        config, without_choices = self.compose(fixed)
        of_sweeper = OmegaConf.select(config, "hydra.sweeper.params") or {}
        parsed = self._parsed([f"{key}={value}" for key, value in of_sweeper.items()], problems) + parsed
        values = [_values(text, override) for text, override in parsed]
        experiments = []
        for point in _points(values):
            try:
                experiments.append(self.check(point))
            except ExperimentError as error:
                problems += error.problems
        problems += _not_for_this_sweeper(parsed, experiments)
        if not problems:  # what the sweep itself is started by is none of its points
            problems = hydra_problems(config)
        if without_choices and not problems:  # Hydra composes the sweep itself without the choices that it varies
            hint = "where only a choice of the sweep brings it, write ++ before it"
            problems = [f"{problem}; {hint}" for problem in without_choices]
        if problems:
            raise ExperimentError(list(dict.fromkeys(problems)))
        varies = [override.key_or_group for _, override in parsed if override.is_sweep_override()]
        return SweepPlan(overrides, list(dict.fromkeys(varies)), math.prod(map(len, values)), experiments)

    def _parsed(self, overrides: list[str], problems: list[str]) -> list[tuple[str, Override]]:
        parser = OverridesParser.create(self.loader)
        parsed = []
        for text in overrides:
            try:
                parsed.append((text, parser.parse_overrides([text])[0]))
            except (HydraException, RecursionError, ValueError):  # a number of 5,000 digits is a ValueError
                problems.append(unreadable(text))
                continue
            if not parsed[-1][1].key_or_group:
                problems.append(unreadable(text))
                parsed.pop()
        return parsed

    def _stumble(self, kept: list[tuple[str, Override]], error: Exception) -> str:
        """What is said of an error that is neither Hydra's nor of a file that cannot be read."""
        if isinstance(error, RecursionError):
            deepest = max((text for text, _ in kept), key=lambda text: text.count("[") + text.count("{"), default="")
            told = show(told_override(deepest))
            return f"{told} or a config file is nested too deeply to be read; write it with fewer brackets"
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        # OmegaConf's own slips, such as where a key is added to what is null.
        for text, override in kept:
            try:
                composed_by(self.loader, self.name, [text])
            except type(error):
                if self.loader.get_group_options(override.key_or_group):
                    return f"{told_override(text)} cannot be composed ({reason}); look at what its file says"
                return f"{told_override(text)} is not possible: there is no such place; see those that --cfg job shows"
            except (HydraException, OmegaConfBaseException):
                continue
        return f"the config cannot be composed ({reason}); look at what its files say of hydra, and at their defaults"

    def _broken_file(self) -> str | None:
        """The first config file that cannot be read."""
        for folder in filter(None, (self.extra, self.directory)):
            for file in sorted(folder.rglob("*.yaml")):
                try:
                    text = file.read_text(encoding="utf-8")
                    if isinstance(parse_yaml(text), dict):
                        parse_yaml(text, OmegaConf.create)
                except OmegaConfBaseException:
                    continue  # it can be read, and composing tells what else is wrong
                except UnicodeDecodeError:
                    return f"{file} is not UTF-8; save it as UTF-8"
                except OSError as error:
                    return f"{file} cannot be read: {error.strerror}"
                except ValueError as error:
                    return f"{file} {error}"
        return None


def _check_output_folder(config: DictConfig) -> None:
    """Raise ExperimentError where Hydra could not make the folder of a run or of a sweep."""
    for place in ("hydra.run.dir", "hydra.sweep.dir"):
        try:
            folder = OmegaConf.select(config, place)
        except (OmegaConfBaseException, ValueError):
            continue  # only known once a job runs
        if folder:
            check_writable(place, Path(folder).absolute())


def _not_for_this_sweeper(parsed: list[tuple[str, Override]], experiments: list[Experiment]) -> list[str]:
    """Hydra's sweepers would say so themselves, but after the sweep has begun."""
    from attnlab.sweeps.settings import Optuna

    problems = []
    by_optuna = bool(experiments) and isinstance(experiments[0].sweep, Optuna)
    for text, override in parsed:
        told = told_override(text)
        values = [] if override.is_interval_sweep() else _values(text, override)
        if len(set(values)) < len(values):
            problems.append(f"{told}: gives a value twice, but a point is one run; give each once")
        if override.is_interval_sweep() and experiments and not by_optuna:
            problems.append(f"{told}: only sweep=optuna chooses within an interval; or give values, with commas")
        elif isinstance(override.value(), Glob) and by_optuna:
            problems.append(f"{told}: sweep=optuna takes no glob; give the choices, with commas between them")
    return problems


def _values(text: str, override: Override) -> list[str]:
    """The override once for each value that a sweep gives it."""
    if not override.is_sweep_override():
        return [text]
    key = text.split("=", 1)[0]
    value = override.value()
    if isinstance(value, IntervalSweep):
        return [f"{key}={value.start}", f"{key}={value.end}"]
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def _points(values: list[list[str]]) -> list[list[str]]:
    if math.prod(map(len, values)) <= LARGEST_CHECKED_GRID:
        return [list(point) for point in itertools.product(*values)]
    first: list[Any] = [choices[0] for choices in values]
    return [[*first[:i], choice, *first[i + 1 :]] for i, choices in enumerate(values) for choice in choices]
