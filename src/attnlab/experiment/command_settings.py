"""Settings of the commands that compose no experiment: their defaults, read with `key=value` arguments in their place.

They import nothing heavy, so that `--help` and a wrong setting are answered at once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from pathlib import Path
from typing import Any, TypeVar

import yaml  # type: ignore[import-untyped]
from omegaconf import DictConfig, OmegaConf

from attnlab.config.paths import runs_folder
from attnlab.errors import ExperimentError
from attnlab.experiment.rewording import CONF, is_of_hydra, sentence

SettingsT = TypeVar("SettingsT", bound="Settings")
WAYS = ("sweep", "runs", "filter", "builds")


@dataclass
class RunsPath:
    """runs: the folder of experiments, prepared data and MLflow's database."""

    runs: str = "runs"


@dataclass
class Settings:
    """What the commands around the stages share; a command's own settings are further fields with their defaults.

    tracking: a choice of conf/tracking, and then the tracker; its settings are tracking.uri, tracking.experiment, ...
    """

    paths: RunsPath = field(default_factory=RunsPath)
    tracking: Any = "mlflow"

    def problems(self) -> list[str]:
        """What is wrong with settings whose types are right."""
        return [] if self.paths.runs else ["paths.runs must be text that is not empty, got ''"]

    @property
    def is_mlflow(self) -> bool:
        from attnlab.tracking.settings import MlflowTracking

        return isinstance(self.tracking, MlflowTracking)

    @property
    def runs_folder(self) -> Path:
        return runs_folder(self.paths.runs)


@dataclass
class CompareSettings(Settings):
    """
    sweep: `last`, or a sweep's identity, or the beginning of one.
    runs: MLflow run ids, [<id>, ...].
    filter: MLflow's search among the runs, such as "tags.sweep = 'abc' and params.attention != 'none'".
    builds: folders that the stages of DVC built, [build/attentions/dot-1, ...].
    metric: what systems are ranked and tested by; null: bleu, or else exact_match or accuracy.
    baseline: a system that the others are tested against; null: all pairs.
    samples: of the bootstrap, which `seed` starts.
    confidence: of the intervals; two systems differ where p is below 1 - confidence.
    sentences: whose attention is shown side by side, at most.
    into: folder; null: comparison in the sweep's folder, or runs/comparisons/<digest of the runs>.

    Exactly one of sweep, runs, filter and builds is given.
    """

    sweep: str | None = None
    runs: list[str] | None = None
    filter: str | None = None
    builds: list[str] | None = None
    metric: str | None = None
    baseline: str | None = None
    samples: int = 1000
    confidence: float = 0.95
    seed: int = 1
    sentences: int = 6
    into: str | None = None

    def problems(self) -> list[str]:
        problems = super().problems()
        if not 100 <= self.samples <= 100_000:
            problems.append(f"samples must be a whole number between 100 and 100000, got {self.samples}")
        if not 0.5 <= self.confidence < 1:
            problems.append(f"confidence must be a number of at least 0.5 and below 1, got {self.confidence}")
        if not 0 <= self.seed < 2**32:
            problems.append(f"seed must be a whole number of at least 0 and below 4294967296, got {self.seed}")
        if self.sentences < 0:
            problems.append(f"sentences must be a whole number of at least 0, got {self.sentences}")
        problems += [f"{name} must not be empty" for name, value in vars(self).items() if value in ("", [])]
        given = [way for way in WAYS if getattr(self, way) is not None]
        if len(given) != 1:
            shown = " and ".join(given) or "none of them"
            problems.append(f"give exactly one of {', '.join(WAYS)}, such as sweep=last; got {shown}")
        return problems


@dataclass
class DeliverSettings(Settings):
    def problems(self) -> list[str]:
        return [
            *super().problems(),
            *([] if self.is_mlflow else ["tracking must be mlflow, which runs are uploaded to"]),
        ]


@dataclass
class RegisterSettings(Settings):
    """
    sweep: `last`, or a sweep's identity, or the beginning of one: its best run by what training monitored.
    run: an MLflow run id. Exactly one of sweep and run is given.
    name: of the registered model.
    alias: the version that is found under it.
    """

    sweep: str | None = None
    run: str | None = None
    name: str = "attnlab"
    alias: str = "champion"

    def problems(self) -> list[str]:
        problems = super().problems()
        if not re.fullmatch(r"[^/:]{1,250}", self.name):
            problems.append(f"name must be 1 to 250 characters without / and :, got {self.name!r}")
        if not re.fullmatch(r"(?!latest$|v\d+$)[A-Za-z_][\w\-]{0,249}", self.alias):
            problems.append(
                f"alias must be a word such as champion, and not read as a version (latest, v3), got {self.alias!r}"
            )
        if bool(self.sweep) == bool(self.run):
            problems.append("give exactly one of sweep and run, such as sweep=last")
        if not self.is_mlflow:
            problems.append("tracking must be mlflow, whose registry this is about")
        return problems


@dataclass
class WayBackSettings(Settings):
    """run: an MLflow run id."""

    run: str | None = None

    def problems(self) -> list[str]:
        problems = super().problems()
        if not self.run:
            problems.append(f"run must be an MLflow run id, got {self.run!r}")
        if not self.is_mlflow:
            problems.append("tracking must be mlflow, where the runs are")
        return problems


def read_settings(kind: type[SettingsT], arguments: Sequence[str]) -> SettingsT:
    """The defaults of a command with `key=value` arguments in their place; --help shows them, and ends the process.

    Raises ExperimentError for settings that are unknown or wrong.
    """
    from attnlab.config.binding import bind
    from attnlab.tracking.settings import Tracking

    config = OmegaConf.structured(kind)
    if {"-h", "--help"} & set(arguments):
        description = str(sys.modules["__main__"].__doc__).strip()
        print(description, "Settings: change with key=value", cleandoc(str(kind.__doc__)), sep="\n\n", end="\n\n")
        print(OmegaConf.to_yaml(config))
        sys.exit()
    given = {}
    for text in arguments:
        key, equals, value = text.partition("=")
        if not key.strip() or not equals or text.startswith("-"):
            raise ExperimentError(f"this command takes settings written key=value, got {text!r}; --help shows them")
        given[key.strip()] = value
    choice, choices = given.pop("tracking", "mlflow"), sorted(path.stem for path in (CONF / "tracking").glob("*.yaml"))
    if choice not in choices:
        raise ExperimentError(f"tracking must be one of {', '.join(choices)}; got {choice!r}")
    config.tracking = OmegaConf.load(CONF / "tracking" / f"{choice}.yaml")
    try:
        for key, value in given.items():
            if key.startswith("tracking."):
                config.merge_with(DictConfig({"tracking": OmegaConf.from_dotlist([f"{key}={value}"]).tracking}))
            else:  # as text: an identity may look like a number; the field has the type
                is_list = value.startswith("[")
                OmegaConf.update(config, key, yaml.load(value, yaml.BaseLoader) if is_list else _text(value))
        settings: Any = OmegaConf.to_object(config)
    except yaml.YAMLError as error:
        raise ExperimentError(f"a list cannot be read ({' '.join(str(error).split())}); write it as [a,b]") from None
    except Exception as error:
        if not is_of_hydra(error):
            raise
        raise ExperimentError(sentence(error)) from error
    settings.tracking = bind(settings.tracking, Tracking, "tracking")
    problems = settings.problems()
    if problems:
        raise ExperimentError(problems)
    return settings


def _text(value: str) -> str | None:
    return None if value == "null" else value
