"""What a command shows for --help, and the options that it takes."""

from __future__ import annotations

import string
import sys
from collections.abc import Sequence

from omegaconf import OmegaConf

from attnlab.errors import ExperimentError
from attnlab.experiment.config_sources import groups, search_folders
from attnlab.experiment.hydra_config import compose_config
from attnlab.experiment.override_text import unreadable
from attnlab.project import CONF, with_pipeline_commands

# Which Hydra takes with dashes.
HYDRA_OPTIONS = (
    "cd", "cfg", "cn", "config-dir", "config-name", "config-path", "cp", "experimental-rerun",
    "help", "hydra-help", "info", "multirun", "package", "resolve", "run", "sc", "shell-completion",
    "version",
)  # fmt: skip


def help_shown() -> bool:
    """Whether the command asks for help; then its script's docstring is printed."""
    is_asked = bool({"-h", "--help"} & set(sys.argv[1:]))
    if is_asked:
        print(with_pipeline_commands(str(sys.modules["__main__"].__doc__).strip()))
    return is_asked


def help_with_groups_shown() -> bool:
    """Whether the command asks for nothing but help; then groups and settings are printed, too."""
    arguments = sys.argv[1:]
    options = [text for text in arguments if text.startswith("-")]
    if not help_shown() or set(options) - {"-h", "--help"}:
        return False
    overrides = [text for text in arguments if text not in options]
    print("", _help_text(overrides), sep="\n")
    return True


def _help_text(overrides: list[str]) -> str:
    """What Hydra shows for --help; Hydra itself takes seconds to list the groups."""
    config = compose_config(overrides)
    template = string.Template(OmegaConf.select(config, "hydra.help.template"))
    found = groups([CONF, *search_folders(config)])
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    listed = "".join(f"{group}: {', '.join(choices)}\n" for group, choices in found.items())
    return template.safe_substitute(APP_CONFIG_GROUPS=listed, CONFIG=OmegaConf.to_yaml(config))


def check_options(arguments: Sequence[str]) -> None:
    """Raise ExperimentError for a setting written as an option, such as `--seed=3`.

    Hydra would show its own options instead.
    """
    for text in arguments:
        name = text.partition("=")[0].lstrip("-")
        is_of_hydra_itself = any(option.startswith(name) for option in HYDRA_OPTIONS)
        if text.startswith("-") and "=" in text and not is_of_hydra_itself:
            raise ExperimentError(unreadable(text))
