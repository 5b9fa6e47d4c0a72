"""Prepare: raw text -> tokenizers, encoded rows, statistics.

python pipelines/prepare.py data=multi30k data.path=../shared/data/multi30k
"""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig

from attnlab.experiment.launch import launch


def main(config: DictConfig) -> Any:
    from attnlab.stages import prepare

    return prepare.main(config)


if __name__ == "__main__":
    launch(main)
