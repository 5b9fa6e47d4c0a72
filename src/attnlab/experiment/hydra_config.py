"""The config as Hydra composes it, the choices of its groups, and Hydra's errors as sentences.

This module imports nothing heavy.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import hydra
import yaml  # type: ignore[import-untyped]
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf, read_write
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from attnlab.config.choices import conf_file, place_of_group
from attnlab.config.params import value_at
from attnlab.config.renamed import new_choice, new_group, new_name
from attnlab.config.signature import settings_of
from attnlab.config.target import TARGET, class_named
from attnlab.errors import ExperimentError, show
from attnlab.experiment.override_text import PARSER, unreadable
from attnlab.project import CONF
from attnlab.runs.sweep_settings import directions, workers

PRESETS = "experiment"
# Groups of which several choices go together: the lists in conf/config.yaml, and presets.
SEVERAL_CHOICES = ("trainer", "callbacks", "loggers", "metrics", "pictures", PRESETS, "debug")
_LIBRARIES = ("hydra", "hydra_plugins", "omegaconf")

# Which way a sweep's objectives are better depends on what training monitors.
OmegaConf.register_new_resolver("directions", directions, replace=True)
# A sweeper that chooses as it goes asks for as many points as the launcher runs at a time.
OmegaConf.register_new_resolver("workers", workers, replace=True)


def compose_config(
    overrides: Sequence[str] = (), folder: Path = CONF, name: str = "config"
) -> DictConfig:
    """The composed config with its `hydra` node, not checked yet.

    Raises ExperimentError where Hydra refuses it.
    """
    with hydra.initialize_config_dir(str(folder.resolve()), version_base="1.3"):
        return compose_in_command(overrides, name)


def compose_in_command(overrides: Sequence[str], name: str | None) -> DictConfig:
    """As `compose_config`, with the config folders of the running command."""
    check_overrides(overrides)
    try:
        return hydra.compose(name, list(overrides), return_hydra_config=True)
    except Exception as error:
        if not is_of_hydra(error):
            raise
        raise ExperimentError(hydra_error_sentence(error, overrides)) from error


def choose_direction(config: DictConfig) -> None:
    """Let Optuna's sweeper look for better objectives where `hydra/sweeper=optuna` chose it.

    By itself it minimises, and a BLEU is better when it is higher. A direction of the command line
    stays.
    """
    node = config.hydra
    # Unresolved: an override such as hydra.sweep.subdir=${hydra.job.num} has no value yet.
    overrides: Any = OmegaConf.to_container(node.overrides.hydra, resolve=False)
    chosen = [text.partition("=")[0].lstrip("+") for text in overrides]
    monitor = OmegaConf.select(config, "training.monitor")
    is_chosen = "hydra.sweeper.direction" in chosen
    if "direction" not in node.sweeper or is_chosen or not isinstance(monitor, str):
        return
    objectives = OmegaConf.select(config, "sweep.objectives", default=["quality"])
    with read_write(node):
        node.sweeper.direction = directions(objectives, monitor)


def groups(folders: Sequence[Path] = (CONF,)) -> dict[str, list[str]]:
    """{group: its choices}, of Hydra's own nothing.

    A folder in `experiment` is no group, but a part of its presets' names: `lesson/dot`.
    """
    found: dict[str, set[str]] = {}
    for folder in folders:
        for file in folder.rglob("*.yaml"):
            place, _, choice = file.relative_to(folder).with_suffix("").as_posix().rpartition("/")
            if place.startswith(f"{PRESETS}/"):
                choice = f"{place.removeprefix(f'{PRESETS}/')}/{choice}"
                place = PRESETS
            if place.split("/")[0] not in ("", "hydra"):
                found.setdefault(place, set()).add(choice)
    return {place: sorted(choices) for place, choices in sorted(found.items())}


def check_overrides(arguments: Sequence[str]) -> None:
    """Raise ExperimentError for overrides that Hydra accepts and only partly follows."""
    _check_search_path(arguments)
    _check_single_choices(arguments)


def _check_single_choices(arguments: Sequence[str]) -> None:
    """Raise ExperimentError for a list of choices where a group takes one.

    Hydra itself merges their files, of which the last one wins.
    """
    problems = []
    single = groups().keys() - set(SEVERAL_CHOICES)
    for argument in arguments:
        group = argument.partition("=")[0].partition("@")[0].lstrip("+")
        if group not in single or "=[" not in argument:
            continue
        choices = _listed(argument)
        if len(choices) > 1:
            several = ",".join(choices)
            problems.append(
                f"{group} takes one choice, got [{several}]; with -m, write {group}={several}"
            )
        elif choices:
            problems.append(
                f"{group} takes one choice, got [{choices[0]}]; write {group}={choices[0]}"
            )
    if problems:
        raise ExperimentError(problems)


def _check_search_path(arguments: Sequence[str]) -> None:
    """Raise ExperimentError for a place of `hydra.searchpath=[...]` without choices.

    Where it does not exist, Hydra itself only warns, and goes on without the choices in it.
    """
    problems = []
    for argument in arguments:
        if not argument.startswith("hydra.searchpath="):
            continue
        for address in _listed(argument):
            if not _exists(address):
                problems.append(
                    "hydra.searchpath must list folders that exist, such as file://my_conf, and "
                    "packages that Python finds (installed, or by PYTHONPATH), such as "
                    f"pkg://my_package.conf; got {show(address)}"
                )
            elif _has_choices_below(address):
                separator = "." if address.startswith("pkg://") else "/"
                problems.append(
                    f"hydra.searchpath names {show(address)}, which holds no choices, but its "
                    f"folder conf does; write {address.rstrip('/')}{separator}conf"
                )
    if problems:
        raise ExperimentError(problems)


def _listed(override: str) -> list[str]:
    """The values of a list in an override; empty where Hydra itself refuses it."""
    try:
        values = PARSER.parse_override(override).value()
    except HydraException:
        return []
    if not isinstance(values, list):
        return []
    return [str(value) for value in values]


def _exists(address: str) -> bool:
    """Whether a config source is there; True for a kind of source that only Hydra knows."""
    schema, _, path = address.partition("://")
    if schema == "file":
        return Path(path).is_dir()
    if schema == "pkg":
        return _package_folder(path) is not None
    return True


def _has_choices_below(address: str) -> bool:
    """Whether the choices are in a folder `conf` of a source that has none itself."""
    schema, _, path = address.partition("://")
    folder = _folder_of(schema, path)
    if folder is None or any(folder.glob("*.yaml")):
        return False
    below = groups([folder / "conf"]) if (folder / "conf").is_dir() else {}
    return bool(below) and all(place.split("/")[0] == "conf" for place in groups([folder]))


def search_folders(config: DictConfig) -> list[Path]:
    """The folders of `hydra.searchpath` of a composed config."""
    folders = []
    for address in config.hydra.searchpath:
        schema, _, path = str(address).partition("://")
        folder = _folder_of(schema, path)
        if folder is not None:
            folders.append(folder)
    return folders


def choices_of(config: DictConfig) -> dict[str, str]:
    """{group: choice}, as Hydra records them.

    Inside a job, whose config has no `hydra` node, these are the choices of the job.
    """
    node = config.get("hydra") or (HydraConfig.get() if HydraConfig.initialized() else None)
    if node is None:
        return {}
    chosen: Any = OmegaConf.to_container(node.runtime.choices, resolve=False)
    return {
        str(group): str(choice)
        for group, choice in chosen.items()
        if choice is not None and not str(group).startswith("hydra/")
    }


def shown_choices(choices: Mapping[str, str], config: Mapping[str, Any]) -> dict[str, str]:
    """{group: what a reader is shown}.

    That is the choice, `pre_post`, or `pre_post, changed` where a value differs from the file's.
    """
    shown = {}
    for group, choice in choices.items():
        changed = changed_values(group, choice, value_at(config, place_of_group(group)))
        shown[group] = f"{choice}, changed" if changed else choice
    return shown


def changed_values(group: str, choice: str, section: Any) -> dict[str, Any]:
    """{dotted key: value} of the values in a section that differ from the choice's file.

    Empty where conf/ has no such file.
    """
    file = conf_file(group, choice, config_folders())
    written = value_at(file.values, place_of_group(group))
    return _different(written, section)


def config_folders(config: DictConfig | None = None) -> tuple[Path, ...]:
    """The folders of configs that a job is composed of: conf/, and those of the user's.

    They come from `--config-dir` and `hydra.searchpath`, in the order in which Hydra looks.

    config: with its `hydra` node; without one that of the running job.
    """
    node = None if config is None else config.get("hydra")
    if node is None and HydraConfig.initialized():
        node = HydraConfig.get()
    folders = [CONF]
    for source in [] if node is None else node.runtime.config_sources:
        folder = _folder_of(source.schema, source.path)
        if folder is not None and folder not in folders:
            folders.append(folder)
    return tuple(folders)


def check_choices_are_found_once(config: DictConfig) -> None:
    """Raise ExperimentError for a choice that two folders have, of which Hydra takes the first.

    The other one, of the same name and another content, would be left out without a word.
    """
    problems = []
    folders = config_folders(config)
    for group, choice in choices_of(config).items():
        file = f"{group.partition('@')[0]}/{choice}.yaml"
        found = [folder / file for folder in folders if (folder / file).is_file()]
        for other in found[1:]:
            if other.read_bytes() != found[0].read_bytes():
                problems.append(
                    f"{group}={choice} is in {found[0]} and in {other}, and Hydra takes the first; "
                    "give yours a name of its own"
                )
    if problems:
        raise ExperimentError(problems)


def _folder_of(schema: str, path: str) -> Path | None:
    """The folder of a config source; None where it is none, or Hydra's own."""
    if schema == "file":
        return Path(path)
    if schema != "pkg" or path.partition(".")[0] in _LIBRARIES:
        return None
    return _package_folder(path)


def _package_folder(name: str) -> Path | None:
    """The folder of a package, as `lab_extras.conf` or `lab_extras/conf`; None if there is none."""
    try:
        spec = importlib.util.find_spec(name.replace("/", ".").rstrip("."))
    except (ModuleNotFoundError, ValueError):  # of a parent that does not exist, of an empty name
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def _different(written: Any, section: Any, prefix: str = "") -> dict[str, Any]:
    if not (isinstance(written, Mapping) and isinstance(section, Mapping)):
        return {}
    different: dict[str, Any] = {}
    for key in written.keys() & section.keys():
        there, here = written[key], section[key]
        if isinstance(there, Mapping):
            different |= _different(there, here, f"{prefix}{key}.")
        elif there != here and "${" not in str(there):
            different[f"{prefix}{key}"] = here
    return dict(sorted(different.items()))


def is_of_hydra(error: Exception) -> bool:
    """Whether the error comes from Hydra, one of its plugins, OmegaConf or invalid YAML."""
    if isinstance(error, (HydraException, OmegaConfBaseException, yaml.YAMLError)):
        return True
    # The package of the code that raised it; Hydra makes its folders by pathlib.
    package = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__")).split(".")[0]
        if name != "pathlib":
            package = name
    return package in _LIBRARIES


def hydra_error_sentence(error: BaseException, arguments: Sequence[str] = ()) -> str:
    """What is wrong, what was given and what is allowed, in one line.

    arguments: those of the command.
    """
    if isinstance(error, MissingConfigException) and error.options and error.missing_cfg_file:
        return _missing_choice(error.missing_cfg_file, error.options)
    if isinstance(error, OverrideParseException):
        is_multirun = "-m" in arguments or "--multirun" in arguments
        return unreadable(error.override, is_multirun)

    cause = _cause_in_omegaconf(error)
    if cause is not None and cause.full_key:
        is_unknown_key = isinstance(cause, (ConfigAttributeError, ConfigKeyError))
        if is_unknown_key and cause.parent_node is not None:
            return _unknown_key(str(cause.full_key), str(cause.key), cause.parent_node)
        if str(cause).startswith("Cannot merge DictConfig with ListConfig"):
            group = str(cause.full_key).replace(".", "/")
            return (
                f"{cause.full_key} must be a mapping of settings, got a list; write "
                f"{cause.full_key}.<setting>=... to change one, or {group}=... to choose a file"
            )
        return f"{cause.full_key}: {str(cause).splitlines()[0]}"

    not_in_the_list = re.match(r"(?:In '([^']+)': )?Could not override '([^']+)'", str(error))
    if not_in_the_list:
        choice, group = not_in_the_list.groups()
        sentence = new_group(group) or _no_such_group(group, choice, arguments)
        if sentence:
            return sentence
    if str(error).startswith("Config group override must be"):
        sentence = _no_choice(arguments)
        if sentence:
            return sentence
    # Hydra's own sentences go on in further lines, which say what to write instead.
    return " ".join(str(error).split()) or type(error).__name__


def _no_such_group(group: str, choice: str | None, arguments: Sequence[str]) -> str:
    """An error for a group of ours that the composed task has no place for; empty for any other.

    choice: the file that chooses it, `model/attention/none`; None where the command does.
    """
    if group not in groups():
        return ""
    tasks = [text for text in arguments if text.startswith("task=")]
    section = group.partition("/")[0]
    whole = f"the {section} of {tasks[-1]}" if tasks else f"this {section}"
    if choice is None:
        return f"{group} cannot be chosen: {whole} has no such part; leave {group} out"
    chosen_group, _, name = choice.rpartition("/")
    return f"{chosen_group}={name} also chooses {group}, but {whole} has no such part; leave it out"


def _missing_choice(path: str, options: Sequence[str]) -> str:
    """An error for a choice that a group has no file for.

    path: `model/attention/dott`.
    options: the files beside it, as Hydra lists them.
    """
    group, _, choice = path.rpartition("/")
    if group.startswith(f"{PRESETS}/"):
        folder = group.removeprefix(f"{PRESETS}/")
        group, choice = PRESETS, f"{folder}/{choice}"
        # Which folder Hydra lists differs between its versions.
        presets = groups(config_folders())[PRESETS]
        options = [preset for preset in presets if preset.startswith(f"{folder}/")] or presets
    renamed = new_choice(group, choice)
    if renamed is not None:
        return f"{group}={choice} is now {group}={renamed}"
    return f"{group} must be one of {', '.join(options)}; got {choice!r}{_hint(choice, options)}"


def _no_choice(arguments: Sequence[str]) -> str:
    """An error for a group whose value is no name of a choice, such as `model=null`.

    Hydra itself names only the type of the value.
    """
    choices = groups()
    for argument in arguments:
        try:
            override = PARSER.parse_override(argument)
        except HydraException:
            continue
        group, value = override.key_or_group, override.value()
        if override.is_sweep_override() or override.is_delete():
            continue
        names_choices = isinstance(value, str | list | dict)
        if group in choices and not names_choices:
            allowed = ", ".join(choices[group])
            return (
                f"{group} must be one of {allowed}, or left out for the default; got {show(value)}"
            )
    return ""


def _unknown_group(group: str) -> str:
    """An error for a group that the composed config has no place for."""
    names = list(groups())
    if group in names:
        return (
            f"{group} has no place in this composition: it belongs to another model or another task"
        )
    renamed = new_group(group)
    if renamed is not None:
        return renamed
    return (
        f"{group} is not a group of the config{_hint(group, names)}; "
        f"the groups are: {', '.join(names)}"
    )


def _unknown_key(full_key: str, key: str, parent: Any) -> str:
    """An error for a setting that the composed config lacks.

    key: the last word of `full_key`.
    parent: the node that would have it.
    """
    if "/" in full_key:
        return _unknown_group(full_key)
    place, _, _ = full_key.rpartition(".")
    if place == "trainer":
        from attnlab.training.trainer_section import refusal_of

        refusal = refusal_of(key)
        if refusal:
            return refusal
    renamed = new_name(full_key)
    if renamed:
        return f"{full_key} is now {renamed}"
    if place in SEVERAL_CHOICES and key in groups().get(place, ()):
        return (
            f"{full_key} is not chosen; write {place}={key}, or {place}=[...,{key}] beside others"
        )
    if not isinstance(parent, DictConfig) or not parent:
        return (
            f"{full_key} is not a setting, for {place} holds no settings; "
            f"write +{full_key}=... to add it"
        )
    no_settings = ("_target_", "_partial_", "hydra")
    names = sorted(str(name) for name in parent if name not in no_settings)
    is_of_the_user = not str(parent.get("_target_", "attnlab.")).startswith("attnlab.")
    # A name that is spelled alike, or else the same name further inside
    above = f"{place}." if place else ""
    similar = difflib.get_close_matches(key, names, n=1)
    # Importing attnlab's own classes takes seconds; their files name nearly all of their settings.
    is_misspelt = bool(similar) and not is_of_the_user
    if not is_misspelt and _is_left_out(parent, key):
        return (
            f"{full_key} is a setting that the config leaves out; write +{full_key}=... to set it"
        )
    if not names and is_of_the_user:
        return f"{full_key} is not a setting; {place} holds none; write +{full_key}=... to add it"
    meant = [f"{above}{name}" for name in similar]
    if not meant:
        inside = _places_named(OmegaConf.to_container(parent, resolve=False), key, above)
        meant = list(inside)[:3]
    hint = f"did you mean {' or '.join(meant)}? " if meant else ""
    return (
        f"{full_key} is not a setting; {hint}{place or 'the config'} has: "
        f"{', '.join(names) or 'no settings'}"
    )


def _is_left_out(node: DictConfig, key: str) -> bool:
    """Whether the class of a node has this setting, with a default that no file repeats."""
    try:
        target = class_named(node.get(TARGET), object)
    except ValueError:  # which the checks of the composed config explain
        return False
    return key in settings_of(target)


def _places_named(node: Any, key: str, path: str = "") -> Iterator[str]:
    """The places of this name in a plain config, but for those in Hydra's own node."""
    if not isinstance(node, dict):
        return
    for name, value in node.items():
        if name == key:
            yield f"{path}{name}"
        if name != "hydra":
            yield from _places_named(value, key, f"{path}{name}.")


def _hint(given: str, names: Iterable[str]) -> str:
    """The name that was most likely meant; empty where none is spelled alike."""
    close = difflib.get_close_matches(given, list(names), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _cause_in_omegaconf(error: BaseException) -> OmegaConfBaseException | None:
    """OmegaConf's error that led to Hydra's: it knows the key."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OmegaConfBaseException):
            return cause
        cause = cause.__cause__
    return None
