"""How a command of Hydra's starts, and how each of its jobs runs: the config is checked once, then the stage begins."""

from __future__ import annotations

import importlib
import os
import string
import sys
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from attnlab.errors import ExperimentError, JobFailedError, masked_values
from attnlab.experiment.console import mistakes_as_sentences, show_problems
from attnlab.experiment.experiment import Experiment, overrides
from attnlab.experiment.hydra_config import compose_config
from attnlab.experiment.rewording import groups
from attnlab.sweeps.job import end_with, running, starter


def launch(application: Callable[[], Any], leads_sweeps: bool = False) -> None:
    """Run Hydra's application; a user's mistake ends it with sentences and exit code 1.

    leads_sweeps: whether a multirun is a sweep, with records and a run of its own, or merely many runs.
    """
    with mistakes_as_sentences():
        if "DVC_STAGE" in os.environ:  # a stage that outlives a killed `dvc repro` would write what the next one writes
            end_with(starter())
        if {"-h", "--help"} & set(arguments := sys.argv[1:]):
            print(str(sys.modules["__main__"].__doc__).strip(), end="\n\n")
            if not any(text.startswith("-") and text not in ("-h", "--help") for text in arguments):
                print(help_text([text for text in arguments if not text.startswith("-")]))
                return
        from attnlab.experiment.sweep_callback import leading

        with leading() if leads_sweeps else nullcontext():
            application()


def help_text(overrides: list[str]) -> str:
    """What Hydra shows for --help; Hydra itself takes seconds to list the groups."""
    config = compose_config(overrides)
    template = string.Template(OmegaConf.select(config, "hydra.help.template"))
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    listed = "".join(f"{group}: {', '.join(choices)}\n" for group, choices in groups().items())
    return template.safe_substitute(APP_CONFIG_GROUPS=listed, CONFIG=OmegaConf.to_yaml(config))


def run_job(stage: str, config: DictConfig) -> Any:
    """Check the config that Hydra composed, and run `main` of `attnlab.stages.<stage>` with it.

    The stage is imported after the check, so that a wrong value is refused at once.

    In a multirun the job's error is shown at once, for Hydra shows only the first one, at the end of the sweep; then
    JobFailedError is raised.
    """
    from attnlab.experiment.composition import check

    node = HydraConfig.get()
    if node.mode != RunMode.MULTIRUN:
        with mistakes_as_sentences():
            return _run(stage, check(config))
    given = masked_values(overrides())
    place = f"job {node.job.num} ({','.join(sorted(given))})"
    try:
        with running(node.job.num, given, Path(node.runtime.output_dir)):
            return _run(stage, check(config))
    except Exception as error:
        if isinstance(error, ExperimentError):
            show_problems(error.problems, f"{place}: ")
        else:
            print(f"error: {place}:", file=sys.stderr)
            traceback.print_exception(error)
        raise JobFailedError(f"{place} failed") from None


def _run(stage: str, experiment: Experiment) -> Any:
    return importlib.import_module(f"attnlab.stages.{stage}").main(experiment)
