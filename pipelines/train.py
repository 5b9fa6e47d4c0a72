"""Train: prepared data -> a model folder, with learning curves and attention maps on the way.

    python pipelines/train.py model/attention=general training.teacher_forcing.ratio=0.5

Alone it also prepares what is missing, evaluates what it trained and reports on it; `chain=false`
leaves out the last two. Under DVC these are stages.
"""

from __future__ import annotations

from typing import Any

import hydra
from omegaconf import DictConfig

from attnlab.experiment.launch import launch, run_job


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(config: DictConfig) -> Any:
    return run_job("chain", config)


if __name__ == "__main__":
    launch(main, leads_sweeps=True)
