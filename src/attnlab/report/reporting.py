"""Report: what the other stages wrote -> one offline page; and what `pipelines/show.py` prints of
it.
"""

from __future__ import annotations

import json
from pathlib import Path

from attnlab.config.paths import REPORT, check_replaceable
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.experiment.evaluation import print_metrics
from attnlab.experiment.experiment import Experiment, here, output_folder
from attnlab.experiment.hydra_config import shown_choices
from attnlab.experiment.launch import say
from attnlab.experiment.params_file import outputs
from attnlab.report.page import write_report


def report(
    experiment: Experiment, data: Path, training: Path, evaluation: Path, into: Path
) -> Path:
    """Write the page, and return where it lies."""
    check_replaceable("paths.report", into, REPORT)
    choices = shown_choices(experiment.choices, experiment.config)
    write_report(experiment.config, choices, data, training, evaluation, into)
    return into / "index.html"


def main(experiment: Experiment) -> None:
    paths = experiment.paths
    if paths.data is None or paths.training is None or paths.evaluation is None:
        raise ExperimentError(
            "paths.data, paths.training and paths.evaluation must name what the other stages "
            "wrote; give all three"
        )
    into = output_folder() / "report" if paths.report is None else here(paths.report)
    page = report(experiment, here(paths.data), here(paths.training), here(paths.evaluation), into)
    say(f"report: {page}")


def show() -> None:
    """Print the metrics that `dvc repro` found, and where its report and MLflow are."""
    path = Path(outputs()["evaluation"], "metrics.json")
    if not path.is_file():
        raise ExperimentError(
            f"there is no {path} to show; run dvc repro first, in the folder that holds dvc.yaml"
        )
    metrics = json.loads(path.read_text(encoding="utf-8"))
    experiment = compose(folder=Path("build"), name="resolved")
    print_metrics(metrics)
    print(f"report: {Path(outputs()['report'], 'index.html').resolve()}")
    print(f"MLflow: {experiment.tracking.where_to_look(experiment.paths.runs_folder)}")
