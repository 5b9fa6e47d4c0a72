"""Show what `dvc repro` made: the metrics, the report, and how to open MLflow.

python pipelines/show.py
"""

from __future__ import annotations

import json
from pathlib import Path

from attnlab.errors import ExperimentError
from attnlab.experiment.composed import compose_config
from attnlab.experiment.experiment import check
from attnlab.stages.compose import outputs


def main() -> None:
    from attnlab.stages.evaluate import print_metrics

    path = Path(outputs()["evaluation"], "metrics.json")
    if not path.is_file():
        raise ExperimentError(f"there is no {path} to show; run dvc repro first, in the folder that holds dvc.yaml")
    metrics = json.loads(path.read_text(encoding="utf-8"))
    experiment = check(compose_config(Path("build"), "resolved", []))
    print_metrics(metrics)
    print(f"report: {Path(outputs()['report'], 'index.html').resolve()}")
    print(f"MLflow: {experiment.tracking.where_to_look(experiment.paths.runs_folder)}")
