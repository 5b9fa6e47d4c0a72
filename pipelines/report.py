"""Report: what the other stages wrote -> one offline page.

python pipelines/report.py -cp "$PWD/build" -cn resolved
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from attnlab.experiment.launch import experiment_job, launch


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
@experiment_job
def main(config: DictConfig) -> None:
    from attnlab.experiment.composition import check

    experiment = check(config)  # every mistake at once, as sentences

    # Imported after the check, so that a wrong value is refused at once.
    from attnlab.report.reporting import report_folders
    from attnlab.terminal import echo

    page = report_folders(experiment)  # of paths.data, paths.training and paths.evaluation
    echo(f"report: {page}")


if __name__ == "__main__":
    launch(main)
