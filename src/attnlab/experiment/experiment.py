"""An experiment: the sections of the config, what each must be, and which of them each stage depends on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from omegaconf.resolvers import oc

from attnlab.experiment.choices import choices_of
from attnlab.experiment.task import Task, mixed_up, task_named

if TYPE_CHECKING:
    from attnlab.batch import Padding
    from attnlab.config.part import Part
    from attnlab.config.paths import Paths
    from attnlab.sweeps.launcher import Launcher
    from attnlab.sweeps.settings import Sweep
    from attnlab.tracking.settings import Tracking
    from attnlab.training.hardware import Hardware

# Which sections decide a stage's output, and the functions that make it, those of the experiment's task among them.
# dvc.yaml says the same to DVC, and a test derives it from these.
PREPARE_SECTIONS = ("data",)
PREPARE_SOURCES = ("attnlab.stages.prepare:prepare", "task:prepare")
TRAIN_SECTIONS = ("seed", "padding", "model", "training", "hardware")
TRAIN_SOURCES = ("attnlab.stages.train:train", "task:module,sizes,read_data")
EVALUATE_SECTIONS = ("search", "hardware")
EVALUATE_SOURCES = ("attnlab.stages.evaluate:evaluate", "task:evaluate,read_data", "attnlab.tracking.pictures")
REPORT_SOURCES = ("attnlab.stages.report:report", "task:report")
# How jobs are chosen and spread: it changes nothing of what one of them finds, nor what is told of it.
SWEEP_SECTIONS = ("sweep", "launcher")


@dataclass(frozen=True)
class Experiment:
    """A checked config.

    config: plain and resolved, but for environment variables, which stay as written: it may be written and logged.
    values: resolved throughout. It may hold secrets, and is only ever hashed.
    choices: {group: choice}; a config that was not composed here has none.
    data, model, search, training: of the kinds that the task's `sections` name.
    """

    config: dict[str, Any]
    values: dict[str, Any] = field(repr=False)
    choices: dict[str, str]
    seed: int
    task: Task
    data: Any
    padding: Padding
    model: Part[Any]
    search: Any
    training: Any
    tracking: Tracking
    hardware: Hardware
    paths: Paths
    sweep: Sweep
    launcher: Launcher
    save_every_minutes: float | None
    chain: bool
    rerun: bool

    @property
    def ensemble_folders(self) -> list[Path]:
        """The models that are evaluated beside the first."""
        return [here(folder) for folder in self.paths.ensemble or []]

    def sections(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Sections to write down."""
        return {name: self.config[name] for name in names}

    @property
    def told(self) -> dict[str, Any]:
        """The config as a tracker is told it."""
        return {name: section for name, section in self.config.items() if name not in SWEEP_SECTIONS}

    def identity(self, names: tuple[str, ...], data: str, sources: tuple[str, ...]) -> str:
        """What these sections, the state of the data and the sources decide: another value of an environment
        variable is another experiment."""
        from attnlab.config.identity import experiment_identity

        return experiment_identity({name: self.values[name] for name in names}, data, self.sources(sources))

    def sources(self, sources: tuple[str, ...]) -> list[str]:
        """The sources, with the module of this experiment's task for `task`."""
        return [source.replace("task:", f"{type(self.task).__module__}:") for source in sources]

    def use_hardware(self) -> None:
        """Set torch up; raises ExperimentError where this machine lacks the device."""
        from attnlab.errors import ExperimentError

        try:
            self.hardware.check_available(jobs_at_a_time())
        except ValueError as error:
            # DVC keeps what compose made of `auto`, maybe on another machine.
            again = "; `dvc repro --force --single-item compose` composes for this machine"
            raise ExperimentError(f"hardware.{error}{again if 'DVC_STAGE' in os.environ else ''}") from error
        self.hardware.apply()


def check(config: DictConfig, build: bool = True) -> Experiment:
    """Bind every section to its constructor and try the model for size; raises ExperimentError with all problems.

    build: whether to try it; pointless where the config is not the one that was meant.
    """
    import torch

    from attnlab.config.secrets import literal_secrets
    from attnlab.errors import ExperimentError
    from attnlab.files import check_writable

    values, written = plain(config), plain(config, keep_environment=True)
    secret = list(literal_secrets(written))
    if secret:
        raise ExperimentError(
            [
                f"{place} holds a secret, which would be written down with the config; put it into a variable of the "
                f"environment and write ${{oc.env:NAME}} for it"
                for place in secret
            ]
        )
    task = task_named(values.get("task"))
    try:
        bound = _bound(task, values, sections_of(task))
    except ExperimentError as error:
        raise ExperimentError(first_causes(error.problems, config)) from error
    if bound["hardware"].precision == "auto":
        bound["hardware"] = bound["hardware"].with_precision()
        for sections in (values, written):  # what is hashed, written and logged is what it means here
            sections["hardware"]["precision"] = bound["hardware"].precision
    for name in ("model", "padding"):
        if "${oc." in json.dumps(written[name]):
            raise ExperimentError(
                f"{name} takes a value from an environment variable; a model folder must be readable without it, so "
                f"give the value itself"
            )
    problems = task.check(bound)
    if problems:
        raise ExperimentError(problems)
    if build:
        # Sizes that do not fit show when the model is built; on the meta device that costs no memory.
        try:
            with torch.device("meta"):
                bound["model"](**task.trial_sizes, padding=bound["padding"])
        except (RuntimeError, OverflowError) as error:
            reason = str(error).splitlines()[0]
            raise ExperimentError(f"model is too large for this machine; make its sizes smaller ({reason})") from error
    check_writable("paths.runs", bound["paths"].runs_folder)
    return Experiment(**{**bound, "task": task}, config=written, values=values, choices=choices_of(config))


def sections_of(task: Task) -> dict[str, Any]:
    """What each section of the config must be under a task, as annotations."""
    from pydantic import Field, PositiveFloat

    from attnlab.batch import Padding
    from attnlab.config.paths import Paths
    from attnlab.sweeps.launcher import Launcher
    from attnlab.sweeps.settings import Sweep
    from attnlab.tracking.settings import Tracking
    from attnlab.training.hardware import Hardware

    return {
        "task": str,
        **task.sections(),
        "seed": Annotated[int, Field(ge=0, lt=2**32)],
        "padding": Padding,
        "tracking": Tracking,
        "hardware": Hardware,
        "paths": Paths,
        "sweep": Sweep,
        "launcher": Launcher,
        "save_every_minutes": PositiveFloat | None,
        "chain": bool,
        "rerun": bool,
    }


def _bound(task: Task, values: dict[str, Any], sections: dict[str, Any]) -> dict[str, Any]:
    """The sections as objects; one that goes with another task is told so, and not compared with what it is not."""
    from attnlab.config.binding import bind_sections
    from attnlab.errors import ExperimentError

    wrong = mixed_up(task, values)
    if not wrong:
        return bind_sections(values, sections)
    others = [{key: value for key, value in part.items() if key not in wrong} for part in (values, sections)]
    problems = list(wrong.values())
    try:
        bind_sections(*others)
    except ExperimentError as error:
        problems += error.problems
    raise ExperimentError(problems)


def first_causes(problems: list[str], config: DictConfig) -> list[str]:
    """The problems without those of settings that only refer, as `${hardware.threads}`, to one with a problem."""
    written = OmegaConf.to_container(config, resolve=False)
    places = {problem.split(" ", 1)[0] for problem in problems}

    def is_told_elsewhere(place: str) -> bool:
        referred = _referred(written, place)
        return referred is not None and (referred in places or is_told_elsewhere(referred))

    return [problem for problem in problems if not is_told_elsewhere(problem.split(" ", 1)[0])]


def _referred(written: Any, place: str) -> str | None:
    """The setting that another one takes all of its value from; None for any other."""
    value = written
    for name in place.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    found = re.fullmatch(r"\$\{(\.*)([\w.]+)\}", value) if isinstance(value, str) else None
    if found is None:
        return None
    # One dot is a neighbour, and each further one a level up.
    above = place.split(".")[: -len(found[1])] if found[1] else []
    return ".".join([*above, found[2]])


def plain(config: DictConfig, keep_environment: bool = False) -> dict[str, Any]:
    """The resolved config without Hydra's node, as plain containers.

    keep_environment: leave `${oc.env:NAME}` as it stands, for whatever is written down or logged: an environment
        may hold secrets.

    Raises ExperimentError where an interpolation leads nowhere.
    """
    from attnlab.errors import ExperimentError
    from attnlab.experiment.override_problems import config_sentence

    config = config.copy()
    OmegaConf.set_struct(config, False)
    config.pop("hydra", None)
    try:
        with _environment_as_written() if keep_environment else nullcontext():
            return OmegaConf.to_container(config, resolve=True)  # type: ignore[return-value]
    except (OmegaConfBaseException, ValueError) as error:
        raise ExperimentError(config_sentence(error)) from error


@contextmanager
def _environment_as_written() -> Iterator[None]:
    OmegaConf.register_new_resolver("oc.env", _env_as_written, replace=True)
    OmegaConf.register_new_resolver("oc.decode", _decode_as_written, replace=True)
    try:
        yield
    finally:
        OmegaConf.register_new_resolver("oc.env", oc.env, replace=True)
        OmegaConf.register_new_resolver("oc.decode", oc.decode, replace=True)


def _env_as_written(name: str, *default: Any) -> str:
    return "${oc.env:" + ",".join([name, *map(_argument, default)]) + "}"


def _decode_as_written(text: str | None, _parent_: Any, _node_: Any) -> Any:
    if isinstance(text, str) and text.startswith("${oc.env:"):
        return "${oc.decode:" + text + "}"
    return oc.decode(text, _parent_, _node_)


def _argument(value: Any) -> str:
    """A resolver's argument as the config's author would write it."""
    if value is None:
        return "null"
    if not isinstance(value, str) or value.startswith("${"):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return "'" + value.replace("'", "\\'") + "'"


def output_folder() -> Path:
    """Hydra's output folder of this job."""
    from hydra.core.hydra_config import HydraConfig

    return Path(HydraConfig.get().runtime.output_dir)


def overrides() -> list[str]:
    """What the command line chose for this job, as it was written: `${oc.env:NAME}` stays."""
    from hydra.core.hydra_config import HydraConfig

    return OmegaConf.to_container(HydraConfig.get().overrides.task, resolve=False)  # type: ignore[return-value]


def jobs_at_a_time() -> int:
    """How many jobs of a sweep Hydra's launcher runs on this machine at once; 1 outside of sweeps."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from attnlab.training.hardware import cores

    if not HydraConfig.initialized() or HydraConfig.get().mode != RunMode.MULTIRUN:
        return 1
    jobs = int(HydraConfig.get().launcher.get("n_jobs") or 1)  # joblib's name and meaning: -1 is all cores
    return jobs if jobs > 0 else max(1, cores() + 1 + jobs)


def here(path: str) -> Path:
    """A path of the config, from the folder that the command was given in."""
    return Path(os.path.expanduser(path)).resolve()
