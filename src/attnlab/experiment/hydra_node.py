"""Hydra's own node says what is built, where logs go and what environment jobs have: it is checked before any of it.

A prefix of a name would not do: `hydra._internal.core_plugins.bash_completion.os.system` and `logging.os.system` begin
well. Nor would a look at what an interpolation stands for just now: Hydra composes again, and looks later. So what is
built is written out, and only single values of a known type may stand for others.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import Any, NamedTuple, NoReturn

from hydra.core.config_store import ConfigNode, ConfigStore
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.basecontainer import BaseContainer
from omegaconf.errors import OmegaConfBaseException
from omegaconf.resolvers import oc

from attnlab.config.secrets import HIDDEN, is_secret_name
from attnlab.errors import has_control_character
from attnlab.experiment.logging_keys import is_known_key
from attnlab.experiment.logging_values import value_problem

ALLOWED_HOMES = ("hydra._internal.core_plugins.", "hydra_plugins.")
# By the names that the sweeper's own config gives them; `_is_class_of` would refuse a name that is imported from below.
ALLOWED_SAMPLERS = tuple(
    f"optuna.samplers.{name}Sampler" for name in ("TPE", "Random", "CmaEs", "NSGAII", "MOTPE", "Grid")
)
# Of each section its own: made as a formatter, a handler would take the format for the name of its file.
ALLOWED_LOGGING = {
    "filters": ("logging.Filter",),
    "formatters": ("colorlog.ColoredFormatter", "logging.Formatter"),
    "handlers": (
        "logging.FileHandler",
        "logging.NullHandler",
        "logging.StreamHandler",
        "logging.handlers.RotatingFileHandler",
        "logging.handlers.TimedRotatingFileHandler",
    ),
}
ALLOWED_STREAMS = ("ext://sys.stdout", "ext://sys.stderr")
# What `logging.config` puts something else in the place of.
_REFERENCES = ("ext://", "cfg://")
# Each with what it could do.
MUST_BE_EMPTY = {
    "hydra.callbacks": "names code that is called",
    "hydra.job.env_set": "decides which programs are found, and what git and Python do when they start",
    "hydra.launcher.setup": "is run by a shell",
    "hydra.launcher.additional_parameters": "reaches the batch script as it is",
    "hydra.sweeper.custom_search_space": "names code that is called",
    # In the place of `params`, which are looked at one by one.
    "hydra.sweeper.search_space": "is an older way to say hydra.sweeper.params, which say it",
    "hydra.sweeper.storage": "is a database with pickles in it",
}
SWEEP_MODE = "hydra.mode=MULTIRUN"  # the longer way to say -m
LOGGING = ("hydra.job_logging", "hydra.hydra_logging")
HELP = ("hydra.help", "hydra.hydra_help")
# What Hydra makes by calling a class.
CALLED = ("hydra.launcher", "hydra.sweeper")
SAMPLER = "hydra.sweeper.sampler"
CHOICES = "hydra.runtime.choices"
# Of a sweeper, by the names of the settings that it varies.
PARAMS = "hydra.sweeper.params"
# Texts that go into file names and into a batch script, whose lines are commands.
ON_ONE_LINE = (*CALLED, "hydra.run", "hydra.sweep", "hydra.job.name", "hydra.output_subdir")
# A log in the folder of the job: anywhere else it could be the start-up file of some program.
_LOG_FILE = re.compile(r"\$\{hydra\.runtime\.output_dir\}/(\$\{hydra\.job\.name\}|\w[\w.-]*)\.log")
# The key of an override that a job may have.
_VARIED = re.compile(r"(\+\+?|~)?[\w./@:-]+")
_PLAIN_NAME = re.compile(r"[\w.-]*\w")
_NOTES = re.compile(r"\.?hydra[\w.-]*")
# What a terminal obeys in a text of several lines.
_TERMINAL_CODE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# By Hydra's own resolver; its values are texts, whatever is given to it.
_TEXTS_ONLY = "${directions:"
_FOLDER, _OF_THE_SWEEP = "hydra.launcher.submitit_folder", "${hydra.sweep.dir}/.submitit/%j"


class Leaf(NamedTuple):
    """A value as it is written.

    is_node: whether an interpolation stands in the place of a whole node.
    of_any_type: whether one could.
    """

    keys: tuple[str | int, ...]
    written: Any
    is_interpolation: bool
    is_node: bool
    of_any_type: bool

    @property
    def path(self) -> str:
        return ".".join(map(str, self.keys))

    @property
    def key(self) -> str:
        return str(self.keys[-1])

    def within(self, *places: str) -> bool:
        return any(self.path == place or self.path.startswith(f"{place}.") for place in places)


def hydra_problems(config: DictConfig) -> list[str]:
    """A sentence for each value of the composed config's `hydra` node by which foreign code could run."""
    if OmegaConf.is_interpolation(config, "hydra"):
        return ["hydra must be written out, got an interpolation"]
    problems = _missing_nodes(config)
    if problems:
        return problems
    resolved = _settled_values(config)
    for leaf in _leaves(config.hydra, ("hydra",)):
        problem = _problem(leaf, resolved)
        if problem:
            given = HIDDEN if is_secret_name(leaf.key) else repr(leaf.written)
            problems.append(f"{leaf.path} {problem}; got {given}")
    of_nodes = _mode_problem(config) + _folder_problem(config) + _missing_root(config)
    return problems + of_nodes + _verbose_problem(resolved)


def overrides_problems(config: DictConfig, overrides: Iterable[str]) -> list[str]:
    """What is wrong with `hydra.overrides`, by which jobs are composed.

    overrides: those that the config was composed with.
    """
    noted: Any = OmegaConf.to_container(config.hydra.overrides, resolve=False)
    if sorted([*noted["hydra"], *noted["task"]]) == sorted(overrides):
        return []
    return ["hydra.overrides is where Hydra notes the command's overrides, and must not be set"]


def write_out(config: DictConfig) -> list[str]:
    """Put what it stands for in the place of each reference in what Hydra calls.

    From here on that is what it was looked at as; what a reference leads to may change. Returns a sentence for each
    text that cannot be that of a launcher or sweeper, or would be taken for a reference once more, as an escaped one
    is when Hydra resolves it.
    """
    for leaf in list(_leaves(config.hydra, ("hydra",))):
        if leaf.is_interpolation and leaf.within(*CALLED) and not leaf.within(PARAMS):
            above = OmegaConf.select(config, ".".join(map(str, leaf.keys[:-1])))
            above[leaf.keys[-1]] = OmegaConf.select(config, leaf.path)
    problems = []
    for leaf in _leaves(config.hydra, ("hydra",)):
        if leaf.within(*CALLED) and not leaf.within(PARAMS):
            is_reference = "must be written out, without ${...}" if "${" in str(leaf.written) else None
            problem = is_reference or _line_problem(leaf, leaf.written)
            problems += [f"{leaf.path} {problem}; got {leaf.written!r}"] if problem else []
    launcher = config.hydra.launcher
    if "submitit_folder" in launcher:
        # Job numbers can be foreseen, and so could the names of pickles that lie in the folder already. The text that
        # was looked at, and not the sweep's folder once more, which may be another one by now.
        launcher.submitit_folder = f"{launcher.submitit_folder.removesuffix('%j')}{token_hex(8)}/%j"
    return problems


def searchpath_problems(entries: Iterable[str]) -> list[str]:
    """What is wrong with `hydra.searchpath`; to be asked before Hydra looks into these places."""
    return [
        f"hydra.searchpath must name folders; got {entry!r}, of which a package would be imported"
        for entry in entries
        if "://" in entry and not entry.startswith("file://")
    ]


def _problem(leaf: Leaf, resolved: DictConfig) -> str | None:
    for place, reason in MUST_BE_EMPTY.items():
        if leaf.within(place) and leaf.written is not None:
            return f"must not be set, for {place} {reason}"
    if leaf.within(CHOICES) and not all(isinstance(below, int) for below in leaf.keys[4:]):
        return f"must not be set: {CHOICES} is where Hydra notes the names of what was chosen"
    if leaf.within(PARAMS) and len(leaf.keys) > 3 and not _VARIED.fullmatch(str(leaf.keys[3])):
        return "must be the key of a setting or of a group"
    if leaf.is_node or (leaf.is_interpolation and leaf.path == "hydra.mode"):
        return "must be written out, without ${...}"
    if leaf.key == "_target_":
        return _target_problem(leaf)
    if leaf.within(*LOGGING):
        return _logging_problem(leaf, resolved)
    if leaf.within(*CALLED) and not _is_described(leaf, resolved):
        return "must not be set, for no launcher, sweeper or sampler of this class describes it"
    if leaf.path == "hydra.runtime.output_dir" and leaf.written != "???":
        return "is told by Hydra, once it has made the folder, and must not be set; choose it by hydra.run.dir"
    if leaf.path == "hydra.job.chdir" and leaf.written not in (None, False):
        return "must stay false, for folders count from where the command is given"
    if leaf.within("hydra.job.name") and isinstance(leaf.written, str):
        return None if _PLAIN_NAME.fullmatch(leaf.written) else "must be a plain name"
    if leaf.within("hydra.output_subdir") and isinstance(leaf.written, str):
        # Any other folder could be somebody's, with a config.yaml of his own in it.
        return None if _NOTES.fullmatch(leaf.written) else "must be .hydra, or a plain name that begins so"
    if leaf.within(*HELP) and _TERMINAL_CODE.search(str(_now(resolved, leaf))):
        return "must be plain text, without control characters"
    if leaf.within(*CALLED) and leaf.is_interpolation and leaf.written != _OF_THE_SWEEP:
        if leaf.of_any_type and not str(leaf.written).startswith(_TEXTS_ONLY):
            return "must be written out, without ${...}"
        if not _is_settled(resolved, leaf.path):
            return "must be the same whenever it is looked at; give the value itself"
    if leaf.within(*ON_ONE_LINE):
        # Below paths.runs it is that which is told.
        is_told = "${paths.runs}" in str(leaf.written) and has_control_character(str(resolved.paths.get("runs")))
        return None if is_told else _line_problem(leaf, _now(resolved, leaf))
    return None


def _target_problem(leaf: Leaf) -> str | None:
    if leaf.path.startswith(f"{SAMPLER}."):
        return None if leaf.written in ALLOWED_SAMPLERS else f"must be one of {', '.join(ALLOWED_SAMPLERS)}"
    places = [place for place in CALLED if leaf.path == f"{place}._target_"]
    if places and _is_class_of(leaf.written, ALLOWED_HOMES) and _description(places[0], leaf.written) is not None:
        return None
    return f"must be a class of {', '.join(home.rstrip('.') for home in ALLOWED_HOMES)}"


def _logging_problem(leaf: Leaf, resolved: DictConfig) -> str | None:
    if leaf.is_interpolation and leaf.key != "filename":
        return "must be written out, without ${...}"
    if not is_known_key(leaf.keys[2:], leaf.written is None):
        return "must not be set, for Hydra's own choices of loggers, handlers and formatters have no such key"
    if isinstance(leaf.written, str) and has_control_character(leaf.written):
        return "must be on one line, without control characters"
    if leaf.key == "filename":
        if leaf.within("hydra.hydra_logging"):
            return "must not be set, for these loggers are there before the run's folder is; see hydra.job_logging"
        if isinstance(leaf.written, str) and _LOG_FILE.fullmatch(leaf.written):
            return None
        return "must be ${hydra.runtime.output_dir}/<name>.log"
    if leaf.key in ("()", "class"):
        allowed = ALLOWED_LOGGING[str(leaf.keys[2])]
        return None if leaf.written in allowed else f"must be one of {', '.join(allowed)}"
    if str(leaf.written).startswith(_REFERENCES) and leaf.written not in ALLOWED_STREAMS:
        return f"must be one of {', '.join(ALLOWED_STREAMS)}"
    return value_problem(leaf.keys[2:], leaf.written, _names_in(resolved.hydra[leaf.keys[1]]))


def _names_in(logging: DictConfig) -> dict[str, set[str]]:
    """The handlers, formatters and filters that are described; null in the place of one is none."""
    described: Any = OmegaConf.to_container(logging, resolve=False)
    sections = {name: described.get(name) for name in ("handlers", "formatters", "filters")}
    return {
        name: {str(key) for key, value in section.items() if value is not None} if isinstance(section, dict) else set()
        for name, section in sections.items()
    }


def _mode_problem(config: DictConfig) -> list[str]:
    """Jobs of a sweep have it from their command."""
    if config.hydra.mode is not RunMode.MULTIRUN or SWEEP_MODE in config.hydra.overrides.hydra:
        return []
    return [f"hydra.mode is MULTIRUN in a config file; start a sweep with -m or {SWEEP_MODE}"]


def _missing_nodes(config: DictConfig) -> list[str]:
    return [
        f"{place} must be there, with what it is made of; choose with sweep=... and launcher=..."
        for place in CALLED
        if not isinstance(OmegaConf.select(config, place), DictConfig)
    ]


def _folder_problem(config: DictConfig) -> list[str]:
    launcher, name = config.hydra.launcher, _FOLDER.rpartition(".")[2]
    written = launcher._get_node(name)._value() if name in launcher.keys() else _OF_THE_SWEEP  # noqa: SIM118 (a null too)
    if written == _OF_THE_SWEEP:
        return []
    return [f"{_FOLDER} must stay {_OF_THE_SWEEP}, for pickles are read from there; got {written!r}"]


def _missing_root(config: DictConfig) -> list[str]:
    """Hydra looks for the key, and sets no loggers up where it is null."""
    return [
        f"{place}.root must be there; null sets up no loggers, and {place.replace('.', '/')}=default Hydra's own"
        for place in LOGGING
        if isinstance(node := config.hydra._get_node(place.partition(".")[2]), DictConfig)
        and not (node._is_interpolation() or node._is_none() or node._is_missing() or "root" in node)
    ]


def _verbose_problem(resolved: DictConfig) -> list[str]:
    try:
        found = OmegaConf.select(resolved, "hydra.verbose")
    except (OmegaConfBaseException, ValueError):  # Hydra stumbles over it as well, and says so
        return []
    names = list(found) if isinstance(found, ListConfig) else [found]
    if isinstance(found, bool) or all(isinstance(name, str) for name in names):
        return []
    return [f"hydra.verbose must be true, false, the name of a logger or a list of names; got {found!r}"]


def _is_described(leaf: Leaf, config: DictConfig) -> bool:
    """Whether the plugin says that its node has such a key; a launcher hands on others, to a shell's script for one."""
    place = next(place for place in (SAMPLER, *CALLED) if leaf.within(place))
    above = place.count(".") + 1
    if len(leaf.keys) == above or leaf.within(PARAMS):
        return True
    node = _description(place, OmegaConf.select(config, f"{place}._target_"))
    key: Any = leaf.keys[above]
    is_value = all(isinstance(below, int) for below in leaf.keys[above + 1 :])  # or a list of them
    return node is not None and key in node and (is_value or isinstance(node._get_node(key), DictConfig))


def _description(place: str, target: object) -> DictConfig | None:
    """What a launcher, sweeper or sampler says that its node has; None for a class that is no such thing."""
    group: Any = ConfigStore.instance().repo
    for name in place.split("."):
        group = group[name]
    nodes: list[Any] = [choice.node for choice in group.values() if isinstance(choice, ConfigNode)]
    return next((node for node in nodes if node.get("_target_") == target), None)


def _is_class_of(target: object, homes: tuple[str, ...]) -> bool:
    """Whether `target` names a class that is defined in the module that it names, at one of these homes."""
    if not isinstance(target, str) or not target.startswith(homes):
        return False
    module_name, _, name = target.rpartition(".")
    try:
        found = vars(importlib.import_module(module_name)).get(name)
    except ImportError:
        return False
    return inspect.isclass(found) and found.__module__ == module_name


def _leaves(node: DictConfig | ListConfig, above: tuple[str | int, ...]) -> Iterator[Leaf]:
    """Every value as it is written; an interpolation or null in the place of a whole node is one value."""
    names: Any = range(len(node)) if isinstance(node, ListConfig) else node.keys()
    for key in names:
        place = (*above, key if isinstance(node, ListConfig) else str(key))
        child: Any = node._get_node(key)
        if isinstance(child, (DictConfig, ListConfig)) and not child._is_interpolation() and not child._is_none():
            yield from _leaves(child, place) if not child._is_missing() else ()
        else:
            is_node = isinstance(child, (DictConfig, ListConfig)) and child._is_interpolation()
            of_any_type = child._metadata.ref_type in (Any, object)
            yield Leaf(place, child._value(), child._is_interpolation(), is_node, of_any_type)


def _settled_values(config: DictConfig) -> DictConfig:
    """A copy of the config that remembers nothing of what it was asked before."""
    copied = config.copy()
    OmegaConf.clear_cache(copied)
    return copied


def _is_settled(config: DictConfig, path: str) -> bool:
    """Whether a value depends on neither the clock nor the job, which are other ones when Hydra looks."""
    with _unsettled_refused():
        try:
            found = OmegaConf.select(config, path, throw_on_missing=True)
        except (OmegaConfBaseException, ValueError):
            return False
    return not isinstance(found, DictConfig)


@contextmanager
def _unsettled_refused() -> Iterator[None]:
    def refused(*_: object) -> NoReturn:
        raise ValueError("not settled")

    def environment(name: str, *default: Any) -> Any:
        # Which the first process of a sweep sets for its jobs.
        return refused() if str(name).startswith("ATTNLAB_") else oc.env(name, *default)

    before = dict(BaseContainer._resolvers)  # Hydra's own cannot be had by a public name
    resolvers: dict[str, Callable[..., Any]] = {"now": refused, "hydra": refused, "oc.env": environment}
    for name, resolver in resolvers.items():
        OmegaConf.register_new_resolver(name, resolver, replace=True)
    try:
        yield
    finally:
        BaseContainer._resolvers.clear()
        BaseContainer._resolvers.update(before)


def _now(config: DictConfig, leaf: Leaf) -> Any:
    try:
        return OmegaConf.select(config, leaf.path, default=leaf.written)
    except (OmegaConfBaseException, ValueError):  # only known once a job runs
        return leaf.written


def _line_problem(leaf: Leaf, value: Any) -> str | None:
    """What is wrong with a text that goes into a file name or a batch script."""
    if not isinstance(value, str):
        return None
    if has_control_character(value):
        return "must be on one line, without control characters"
    if not leaf.within("hydra.launcher"):
        return None
    if any(character in value for character in "'\"\\"):
        return "must have no quotes and backslashes, which a shell and Slurm read in ways of their own"
    # Submitit puts numbers of the job in the place of %t and others, of which only %j is ours.
    is_pattern = leaf.path == _FOLDER and "%" in value.removesuffix("%j")
    return "must have no % in the sweep's folder" if is_pattern else None
