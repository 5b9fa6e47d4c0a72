"""Show what `dvc repro` made: the metrics, the report, and how to open MLflow.

python pipelines/show.py
"""

from __future__ import annotations

import json
from pathlib import Path

from attnlab.errors import ExperimentError
from compose import outputs
from composed import compose_config
from experiment import check
from launch import mistakes_as_sentences


def main() -> None:
    from evaluate import print_metrics

    path = Path(outputs()["evaluation"], "metrics.json")
    if not path.is_file():
        raise ExperimentError(f"there is no {path} to show; run dvc repro first, in the folder that holds dvc.yaml")
    metrics = json.loads(path.read_text(encoding="utf-8"))
    experiment = check(compose_config(Path("build"), "resolved", []))
    print_metrics(metrics)
    print(f"report: {Path(outputs()['report'], 'index.html').resolve()}")
    print(f"MLflow: {experiment.tracking.where_to_look(experiment.paths.runs_folder)}")


if __name__ == "__main__":
    with mistakes_as_sentences():
        main()
