"""Prepare: raw text -> tokenizers, encoded rows, statistics.

python pipelines/prepare.py data=multi30k data.path=../shared/data/multi30k
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
    from attnlab.experiment.preparation import prepared_folder, write_prepared
    from attnlab.terminal import echo

    folder = prepared_folder(experiment)  # paths.data, or one that equal data share
    write_prepared(experiment, folder)  # also where it has some already

    sizes = experiment.task.open_data(folder).sizes
    rows = ", ".join(f"{size} {split}" for split, size in sizes.items())
    echo(f"prepared {rows} rows in {folder}")


if __name__ == "__main__":
    launch(main)
