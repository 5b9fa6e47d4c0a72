"""Evaluate: a trained model on the test split -> metrics, what it made of each sentence, attention.

    python pipelines/evaluate.py paths.model=build/model paths.data=build/data search.size=10

`paths.ensemble=[another/model]` evaluates that model and the others as one.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from attnlab.experiment.launch import experiment_job, launch


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
@experiment_job
def main(config: DictConfig) -> None:
    from attnlab.experiment.composition import check, with_task_of_model

    # Every mistake at once, as sentences; a classifier's folder needs no task=classification.
    experiment = check(with_task_of_model(config))

    # Imported after the check, so that a wrong value is refused at once.
    from attnlab.experiment.evaluation import evaluate_model_folder
    from attnlab.experiment.run_record import where_to_look
    from attnlab.terminal import echo

    evaluation = evaluate_model_folder(experiment)  # the metrics go to MLflow, too

    echo(f"metrics: {evaluation / 'metrics.json'}")
    echo(f"MLflow:  {where_to_look(experiment)}")


if __name__ == "__main__":
    launch(main)
