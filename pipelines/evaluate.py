"""Evaluate: a trained model on the test split -> metrics, what it made of each sentence, attention.

    python pipelines/evaluate.py paths.model=build/model paths.data=build/data search.size=10

`paths.ensemble=[another/model]` evaluates that model and the others as one.
"""

from __future__ import annotations

from typing import Any

import hydra
from omegaconf import DictConfig

from attnlab.experiment.launch import launch, run_job


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(config: DictConfig) -> Any:
    return run_job("evaluate", config)


if __name__ == "__main__":
    launch(main)
