"""The scripts of pipelines/ as subcommands: `attnlab train`, `attnlab compare`, ..."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from typing import Any

from attnlab.project import COMMAND_VARIABLE, PIPELINES

# Script -> its line in `attnlab --help`.
SUMMARIES = {
    "train": "train an experiment, or a sweep with -m; also prepares, evaluates and reports",
    "compare": "say which systems of a sweep differ, and by how much",
    "prepare": "prepare the data of an experiment",
    "evaluate": "evaluate a trained model on the test split",
    "report": "write the page of an evaluated experiment",
    "replicate": "train the experiments of a study, and say what they show",
    "deliver": "upload the runs that MLflow lacks",
    "compose": "compose params.yaml into the config that the stages of DVC read",
    "show": "show what `dvc repro` made",
}


def add_pipelines(parsers: Any) -> None:
    """List the pipelines; each reads its arguments itself."""
    for name, summary in SUMMARIES.items():
        parsers.add_parser(name, help=summary, add_help=False)


def run_pipeline(name: str, arguments: Sequence[str]) -> None:
    """Run a script as Python would if the user had started it.

    It must be a script: Hydra looks for conf/ from its file, and Lightning's ddp starts
    `sys.argv[0]` again, for which it is an absolute path.
    """
    script = str(PIPELINES / f"{name}.py")
    os.environ[COMMAND_VARIABLE] = "attnlab"
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
