"""The command line of a script that composes no experiment: a file of conf/, with what was given instead.

Not composed by Hydra: `sweep` is a group in conf/, and for these scripts it is the sweep that is meant.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import GrammarParseError

from attnlab.errors import ExperimentError
from attnlab.experiment.composed import CONF
from attnlab.experiment.override_problems import unreadable

# What a key or a value without a meaning raises: half a bracket, half a reference, a number too long to be one.
_UNREADABLE = (yaml.YAMLError, GrammarParseError, ValueError, LookupError, AttributeError, RecursionError)


def given_arguments(description: str | None, file: Path) -> list[str]:
    """The command's arguments; --help shows the description and the file, and ends the process.

    Raises ExperimentError for other options.
    """
    arguments = sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(
            (description or "").strip(), "Settings: change with key=value", file.read_text(encoding="utf-8"), sep="\n\n"
        )
        sys.exit()
    options = [text for text in arguments if text.startswith("-")]
    if options:
        raise ExperimentError(f"this command takes settings written key=value and no options, got {' '.join(options)}")
    return arguments


def settings_of(file: Path, arguments: Sequence[str], as_written: Collection[str]) -> dict[str, Any]:
    """What the file says, with `key=value` arguments instead, and the choice of conf/tracking in place of its name.

    as_written: keys whose values are taken letter by letter.

    Raises ExperimentError for what cannot be read.
    """
    pairs = [text.partition("=") for text in arguments]
    problems = [unreadable("".join(parts)) for parts in pairs if not parts[0].strip() or not parts[1]]
    if problems:
        raise ExperimentError(problems)
    config = OmegaConf.load(file)
    assert isinstance(config, DictConfig)
    given = {key.strip(): value for key, _, value in pairs}
    choice = given.pop("tracking", config.tracking)
    choices = sorted(path.stem for path in (CONF / "tracking").glob("*.yaml"))
    if choice not in choices:
        raise ExperimentError(f"tracking must be one of {', '.join(choices)}; got {choice!r}")
    config.tracking = OmegaConf.load(CONF / "tracking" / f"{choice}.yaml")
    for key, text in given.items():
        try:
            OmegaConf.update(config, key, _value(key, text, as_written), force_add=True)
        except _UNREADABLE:
            raise ExperimentError(unreadable(f"{key}={text}")) from None
    return OmegaConf.to_container(config, resolve=True)  # type: ignore[return-value]


def _value(key: str, text: str, as_written: Collection[str]) -> Any:
    if text == "null":
        return None
    if key in as_written:
        return _unquoted(text)
    if key in ("runs", "builds"):
        return yaml.load(text, yaml.BaseLoader)  # run ids and folders, too, may look like numbers
    # A reference stays one: it stands for something of the file, which is not here.
    return OmegaConf.to_container(OmegaConf.from_dotlist([f"x={text}"]))["x"]  # type: ignore[index, call-overload]


def _unquoted(text: str) -> str:
    """Without the quotes around all of it that other commands of this project ask for."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" and text[0] not in text[1:-1]
    return text[1:-1] if is_quoted else text
