"""Report: what the other stages wrote -> one offline page.

python pipelines/report.py -cp ../build -cn resolved
"""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig

from attnlab.experiment.choices import shown_choices
from attnlab.experiment.experiment import Experiment, check, here, output_folder


def report(experiment: Experiment, data: Path, training: Path, evaluation: Path, into: Path) -> Path:
    """Write the page, and return where it lies."""
    from attnlab.config.paths import REPORT, check_replaceable
    from attnlab.report.page import Stages

    check_replaceable("paths.report", into, REPORT)
    choices = shown_choices(experiment.choices, experiment.config)
    experiment.task.report(experiment.config, choices, Stages(data, training, evaluation), into)
    return into / "index.html"


def main(config: DictConfig) -> None:
    from attnlab.errors import ExperimentError
    from attnlab.experiment.progress import say

    experiment = check(config)
    paths = experiment.paths
    if paths.data is None or paths.training is None or paths.evaluation is None:
        raise ExperimentError(
            "paths.data, paths.training and paths.evaluation must name what the other stages wrote; give all three"
        )
    into = output_folder() / "report" if paths.report is None else here(paths.report)
    page = report(experiment, here(paths.data), here(paths.training), here(paths.evaluation), into)
    say(f"report: {page}")
