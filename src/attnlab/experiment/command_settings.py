"""Settings of the commands that compose no experiment.

A command's `key=value` arguments replace the defaults. This module imports nothing heavy, so that
`--help` and a wrong setting are answered at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import yaml  # type: ignore[import-untyped]
from omegaconf import DictConfig, OmegaConf
from pydantic import Field, NonNegativeInt

from attnlab.config.binding import bind
from attnlab.config.paths import NotEmpty, runs_folder
from attnlab.config.target import TARGET
from attnlab.errors import ExperimentError
from attnlab.project import CONF, with_pipeline_commands
from attnlab.runs.mlflow_variables import environment_note, with_environment
from attnlab.runs.tracking import MlflowTracking, Tracking

SettingsT = TypeVar("SettingsT", bound="Settings")
Texts = Annotated[list[NotEmpty], Field(min_length=1)]


@dataclass
class RunsPath:
    """runs: the folder of experiments, prepared data and MLflow's database."""

    runs: NotEmpty = "runs"


@dataclass
class Settings:
    """Settings that the commands around the stages share.

    A command's own settings are further fields with their defaults.

    tracking: one of `trackers`, the choices of conf/tracking that the command can use, and then the
        tracker; its settings are tracking.uri, tracking.experiment, ...
    """

    trackers: ClassVar[tuple[str, ...]] = ("mlflow",)
    paths: RunsPath
    tracking: MlflowTracking

    @property
    def runs_folder(self) -> Path:
        return runs_folder(self.paths.runs)


@dataclass
class CompareSettings(Settings):
    """
    sweep: `last`, or a sweep's identity, or the beginning of one.
    runs: MLflow run ids, [<id>, ...].
    filter: MLflow's search among the runs, such as "tags.sweep = 'abc' and params.attention !=
        'none'".
    builds: folders that the stages of DVC built, [build/dot-1, ...].
    metric: what systems are ranked and tested by; null: bleu, or else exact_match or accuracy.
    baseline: a system that the others are tested against; null: all pairs.
    samples: of the bootstrap, which `seed` starts.
    confidence: of the intervals; two systems differ where p is below 1 - confidence.
    sentences: whose attention is shown side by side, at most.
    into: folder; null: comparison in the sweep's folder, or runs/comparisons/<digest of the runs>.
    allow: modules outside of attnlab whose classes the evaluations may name, [my_package]: a task
        of your own, and metrics whose sentences are then resampled, too.

    Exactly one of sweep, runs, filter and builds is given.
    """

    trackers = ("mlflow", "none")
    tracking: Tracking  # type: ignore[assignment]
    sweep: NotEmpty | None = None
    runs: Texts | None = None
    filter: NotEmpty | None = None
    builds: Texts | None = None
    metric: NotEmpty | None = None
    baseline: NotEmpty | None = None
    samples: Annotated[int, Field(ge=100, le=100_000)] = 1000
    confidence: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    sentences: NonNegativeInt = 6
    into: NotEmpty | None = None
    allow: list[NotEmpty] = field(default_factory=list)

    def __post_init__(self) -> None:
        ways = ("sweep", "runs", "filter", "builds")
        given = [way for way in ways if getattr(self, way) is not None]
        if len(given) != 1:
            shown = " and ".join(given) or "none of them"
            raise ValueError(
                f"give exactly one of {', '.join(ways)}, such as sweep=last; got {shown}"
            )


class DeliverSettings(Settings):
    """The settings of a delivery.

    tracking: the tracker that runs are uploaded to; its settings are tracking.uri,
        tracking.experiment, ...
    """


def read_settings(kind: type[SettingsT], arguments: Sequence[str]) -> SettingsT:
    """The defaults of a command, with its `key=value` arguments applied.

    `--help` shows the settings and ends the process.

    Raises ExperimentError, or an error of OmegaConf, for settings that are unknown or wrong.
    """
    defaults = {"paths": {"runs": "runs"}, "tracking": "mlflow", **_own_defaults(kind)}
    config = OmegaConf.create(defaults)
    if {"-h", "--help"} & set(arguments):
        _print_help(kind, config)
        sys.exit()

    given = _given_settings(arguments)
    choice = given.pop("tracking", "mlflow")
    if choice not in kind.trackers:
        raise ExperimentError(f"tracking must be one of {', '.join(kind.trackers)}; got {choice!r}")
    config.tracking = OmegaConf.load(CONF / "tracking" / f"{choice}.yaml")
    OmegaConf.set_struct(config, True)
    for key, value in given.items():
        OmegaConf.update(config, key, _parsed(value, OmegaConf.select(config, key)))
    node: Any = OmegaConf.to_container(config, resolve=True)
    note = environment_note(node["tracking"])
    if note:
        print(note, file=sys.stderr)
    node["tracking"] = with_environment(node["tracking"])
    node["paths"][TARGET] = f"{RunsPath.__module__}.{RunsPath.__name__}"
    return bind({TARGET: f"{kind.__module__}.{kind.__name__}", **node}, kind)


def _own_defaults(kind: type[Settings]) -> dict[str, Any]:
    """The defaults of the settings that a command has beside the shared ones."""
    defaults = {}
    for setting in fields(kind):
        if setting.name in ("paths", "tracking"):
            continue
        make_default = setting.default_factory
        defaults[setting.name] = setting.default if make_default is MISSING else make_default()
    return defaults


def _print_help(kind: type[Settings], config: DictConfig) -> None:
    """Print what the command does, what its settings mean, and their defaults."""
    description = with_pipeline_commands(str(sys.modules["__main__"].__doc__).strip())
    meanings = cleandoc(str(kind.__doc__))
    print(description, "Settings: change with key=value", meanings, sep="\n\n", end="\n\n")
    print(OmegaConf.to_yaml(config))


def _given_settings(arguments: Sequence[str]) -> dict[str, str]:
    """{setting: value as text} of the `key=value` arguments; the last value of a setting holds."""
    given = {}
    for text in arguments:
        key, equals, value = text.partition("=")
        if not key.strip() or not equals or text.startswith("-"):
            raise ExperimentError(
                f"this command takes settings written key=value, got {text!r}; --help shows them"
            )
        given[key.strip()] = value
    return given


def _parsed(text: str, default: Any) -> Any:
    """The value of a setting, of the type of its default.

    Text stays as it is, for an identity may look like a number.
    """
    if text == "null":
        return None
    if text.startswith("["):
        return yaml.load(text, yaml.BaseLoader)
    if isinstance(default, (bool, int, float)):
        return yaml.safe_load(text)
    return text
