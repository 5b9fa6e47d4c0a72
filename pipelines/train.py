"""Train: prepared data -> a model folder, with learning curves and attention maps on the way.

    python pipelines/train.py model/attention=general training.teacher_forcing.ratio=0.5

Alone it also prepares what is missing, evaluates what it trained and reports on it; `chain=false`
leaves out the last two. Under DVC these are stages.
"""

from __future__ import annotations

from typing import Any

import hydra
from omegaconf import DictConfig

from attnlab.experiment.launch import experiment_job, launch


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
@experiment_job
def main(config: DictConfig) -> Any:
    from attnlab.experiment.composition import check
    from attnlab.experiment.evaluation import evaluate
    from attnlab.experiment.preparation import prepare
    from attnlab.experiment.run import open_run, set_up
    from attnlab.report.reporting import report, show_outputs

    experiment = check(config)  # every mistake at once, as sentences
    set_up(experiment)  # threads, repeatable algorithms, places to write
    data = prepare(experiment)  # tokenizers and encoded rows, made where they are missing

    with open_run(experiment, data) as run:  # its folder: lock, last checkpoint, MLflow
        if not run.is_finished:
            # Lightning takes seconds to import, and what is finished needs none.
            from attnlab.experiment.training import make_batches, make_module, make_trainer

            module = make_module(experiment, data)  # the model, drawn from its seed, and its loss
            batches = make_batches(experiment, data)  # padded, each epoch in another order
            trainer = make_trainer(experiment, data, batches, run.folder, saved=run.sync)
            trainer.fit(module, batches, ckpt_path=run.last_checkpoint)
            run.keep(trainer)  # the best weights as a model folder, the learning curves
        run.publish()  # to where the config wants them: DVC has deleted its outputs

    if experiment.chain and run.is_first_process:  # the lock is free for other evaluations
        evaluation = evaluate(experiment, data, run)
        page = report(experiment, data, run, evaluation)
        show_outputs(experiment, run, page)
    return run.objective  # for Hydra's sweepers


if __name__ == "__main__":
    launch(main, leads_sweeps=True)
