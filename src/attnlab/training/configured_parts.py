"""The callbacks and the loggers of Lightning that a config names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.loggers import Logger
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from attnlab.config.binding import bind
from attnlab.errors import ExperimentError


def configured_parts(
    callbacks: Mapping[str, Any], loggers: Mapping[str, Any], folder: Path
) -> tuple[list[pl.Callback], list[Logger]]:
    """The callbacks and the loggers of a config's sections.

    folder: where a logger that needs a `save_dir` and is given none gets a folder of its name.

    Raises ExperimentError with every problem.
    """
    problems: list[str] = []
    built_callbacks = []
    for name, node in callbacks.items():
        built_callbacks.append(_configured_part(node, pl.Callback, f"callbacks.{name}", problems))
    built_loggers = []
    for name, node in loggers.items():
        needs_folder = str(node.get("_target_")).endswith(("CSVLogger", "TensorBoardLogger"))
        complete = {"save_dir": str(folder / name), **node} if needs_folder else node
        built_loggers.append(_configured_part(complete, Logger, f"loggers.{name}", problems))
    if problems:
        raise ExperimentError(problems)
    return built_callbacks, built_loggers


def _configured_part(node: Mapping[str, Any], kind: type, path: str, problems: list[str]) -> Any:
    """The callback or logger of a node.

    If it cannot be built, the result is None and the reason is added to `problems`.
    """
    try:
        return bind(node, kind, path)
    except ExperimentError as error:
        problems += error.problems
    except ImportError as error:  # as of TensorBoardLogger
        missing = str(error).splitlines()[0]
        problems.append(
            f"{path}: a package is missing, install it with pip or leave {path} out: {missing}"
        )
    except MisconfigurationException as error:  # Lightning's own checks of its settings
        problems.append(f"{path}: {' '.join(str(error).split())}")
    return None
