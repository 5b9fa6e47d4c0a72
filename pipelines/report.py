"""Report: what the other stages wrote -> one offline page.

python pipelines/report.py -cp ../build -cn resolved
"""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig

from attnlab.experiment.launch import launch


def main(config: DictConfig) -> Any:
    from attnlab.stages import report

    return report.main(config)


if __name__ == "__main__":
    launch(main)
