"""Where conf/ and pipelines/ lie, and the command that starts a pipeline.

In a clone both folders lie beside src/. A wheel has them inside the package.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
IS_INSTALLED = (_PACKAGE / "conf").is_dir()  # from a wheel, and no clone
_ROOT = _PACKAGE if IS_INSTALLED else _PACKAGE.parents[1]

CONF = _ROOT / "conf"
PIPELINES = _ROOT / "pipelines"
STUDIES = PIPELINES / "studies"

# The command `attnlab` sets it, so that the workers of a sweep know of it, too.
COMMAND_VARIABLE = "ATTNLAB_COMMAND"


def pipeline_command(name: str) -> str:
    """How the user starts a pipeline: `attnlab train`, or `python pipelines/train.py`."""
    if IS_INSTALLED or COMMAND_VARIABLE in os.environ:
        return f"attnlab {name}"
    return f"python pipelines/{name}.py"


def with_pipeline_commands(text: str) -> str:
    """A text that says `python pipelines/train.py`, with the command that the user has."""
    return re.sub(r"python pipelines/(\w+)\.py", lambda found: pipeline_command(found[1]), text)
