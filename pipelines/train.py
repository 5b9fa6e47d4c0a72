"""Train: prepared data -> a model folder, with learning curves and attention maps on the way.

    python pipelines/train.py model/attention=general training.teacher_forcing.ratio=0.5

It also prepares what is missing, evaluates what it trained and reports on it; `chain=false` leaves
out the last two, which are stages of their own under DVC. `dry_run=true` trains nothing, and prints
what it would cost.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from attnlab.experiment.launch import experiment_job, launch


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
@experiment_job
def main(config: DictConfig) -> float | tuple[float, ...] | None:
    from attnlab.experiment.composition import check

    experiment = check(config)  # every mistake at once, as sentences

    # Imported after the check, so that a wrong value is refused at once.
    from attnlab.experiment.evaluation import evaluate
    from attnlab.experiment.preparation import prepare
    from attnlab.experiment.run import open_run, set_up

    set_up(experiment)  # threads, repeatable algorithms, places to write
    data = prepare(experiment)  # tokenizers and encoded rows, made where they are missing

    with open_run(experiment, data) as run:  # its folder: lock, last checkpoint, MLflow
        if not run.is_finished:
            # Lightning takes seconds to import, and what is finished needs none.
            from attnlab.experiment.training import make_batches, make_module, make_trainer

            # The LightningModule of its task: the model, its loss, teacher forcing.
            module = make_module(experiment, data)
            batches = make_batches(experiment, data)  # padded, each epoch in another order
            trainer = make_trainer(
                experiment, data, batches, run.folder, after_checkpoint=run.upload
            )
            trainer.fit(module, batches, ckpt_path=run.last_checkpoint)
            run.keep(trainer)  # the best weights as a model folder, the learning curves
        run.publish()  # ends the run in MLflow, and copies the model to paths.model, if set

    # A distributed training has other processes; a second command may evaluate meanwhile.
    if experiment.chain and run.is_first_process:
        from attnlab.report.reporting import report, show_outputs

        evaluation = evaluate(experiment, data, run)
        page = report(experiment, data, run, evaluation)
        show_outputs(experiment, run, page)
    return run.objective  # for Hydra's sweepers


if __name__ == "__main__":
    launch(main, leads_sweeps=True)
