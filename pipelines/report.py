"""Report: what the other stages wrote -> one offline page.

python pipelines/report.py -cp ../build -cn resolved
"""

from __future__ import annotations

from typing import Any

import hydra
from omegaconf import DictConfig

from attnlab.experiment.launch import launch, run_job


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(config: DictConfig) -> Any:
    return run_job("report", config)


if __name__ == "__main__":
    launch(main)
