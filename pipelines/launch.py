"""How every stage starts and ends: the whole config is checked before anything runs, and an error is a sentence."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

CONF = Path(__file__).resolve().parent.parent / "conf"

# Dependencies that would call home, or warn about how they were started.
QUIET_ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "TOKENIZERS_PARALLELISM": "false",
    "HYDRA_FULL_ERROR": "1",  # Hydra's own report would bury the sentence and end the process
}
ASKS_ONLY = (
    "--help",
    "-h",
    "--hydra-help",
    "--version",
    "--cfg",
    "-c",
    "--info",
    "-i",
    "--shell-completion",
    "-sc",
)


def launch(main: Callable[[], Any]) -> None:
    """Run a stage's `main`, which `hydra.main` decorates; a user's mistake is told in sentences, with exit code 1."""
    for name, value in QUIET_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    os.environ["HYDRA_FULL_ERROR"] = "1"
    from attnlab.composition.error import ExperimentError

    try:
        if not any(argument.split("=")[0] in ASKS_ONLY for argument in sys.argv[1:]):
            _check_before_start()
        main()
    except ExperimentError as error:
        _fail(error.problems)
    except (HydraException, OmegaConfBaseException) as error:
        _fail([hydra_sentence(error)])
    except KeyboardInterrupt:
        print("stopped by Ctrl-C", file=sys.stderr)
        sys.exit(130)


def _fail(problems: list[str]) -> None:
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(1)


def _check_before_start() -> None:
    """Compose what Hydra is about to compose and check all of it, Hydra's own node included, while nothing has run."""
    from experiment import check
    from hydra_node import check_hydra_node

    arguments = get_args_parser().parse_args()
    directory, name = CONF, "config"
    if arguments.config_path is not None or arguments.config_dir is not None:
        directory = Path(arguments.config_path or arguments.config_dir)
        directory = directory if directory.is_absolute() else Path(sys.argv[0]).resolve().parent / directory
    name = arguments.config_name or name
    overrides = _first_of_each_sweep(arguments.overrides) if arguments.multirun else arguments.overrides
    config = compose_config(directory, name, overrides)
    check_hydra_node(OmegaConf.to_container(config.hydra, resolve=False))
    check(config)


def compose_config(directory: Path, name: str, overrides: list[str]) -> DictConfig:
    """The composed config with its `hydra` node; raises ExperimentError with what Hydra complains of."""
    from attnlab.composition.error import ExperimentError

    if not directory.is_dir():
        raise ExperimentError(f"the config folder {directory} does not exist; `dvc repro` writes build/resolved.yaml")
    try:
        with hydra.initialize_config_dir(str(directory.resolve()), version_base="1.3"):
            return hydra.compose(name, overrides, return_hydra_config=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise ExperimentError(hydra_sentence(error)) from error


def hydra_sentence(error: Exception) -> str:
    """What Hydra or OmegaConf says, in one sentence with what was given and what there is."""
    text = str(error).strip()
    group = re.search(
        r"Could not find '(?P<given>[^']+)'\s+Available options in '(?P<group>[^']+)':\s*(?P<options>.*)",
        text,
        re.S,
    )
    if group:
        given = group["given"].removeprefix(group["group"] + "/")
        options = ", ".join(group["options"].split())
        return f"{group['group']} must be one of {options}; got '{given}'"
    missing_group = re.search(r"Could not override '(?P<key>[^']+)'", text)
    unknown_key = re.search(r"Key '(?P<key>[^']+)' is not in struct", text)
    if missing_group and unknown_key:
        return f"{missing_group['key']} is not a setting; --help shows all groups and settings"
    if missing_group:
        return f"{missing_group['key']} is not a group of the config; --help shows all groups and settings"
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and "full_key" not in line and "object_type" not in line
    ]
    return " ".join(lines)


def _first_of_each_sweep(overrides: list[str]) -> list[str]:
    """One point of a multirun's grid, to check before any job starts; each job checks its own."""
    chosen = []
    for override in OverridesParser.create().parse_overrides(overrides):
        if override.is_sweep_override():
            first = next(iter(override.sweep_string_iterator()))
            chosen.append(f"{override.input_line.split('=', 1)[0]}={first}")
        else:
            chosen.append(override.input_line)
    return chosen
