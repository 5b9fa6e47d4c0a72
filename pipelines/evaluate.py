"""Evaluate: a trained model on the test split -> metrics, what it made of each sentence, attention.

    python pipelines/evaluate.py paths.model=build/model paths.data=build/data search.size=10

`paths.ensemble=[another/model]` evaluates that model and the others as one.
"""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig

from attnlab.experiment.launch import launch


def main(config: DictConfig) -> Any:
    from attnlab.stages import evaluate

    return evaluate.main(config)


if __name__ == "__main__":
    launch(main)
