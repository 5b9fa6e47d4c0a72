"""Yoyodyne 0.5.27 at one job, in its own environment: `python yoyodyne_runner.py '<job as JSON>'`.

Trains by its own entry (`yoyodyne.cli.main.python_interface`, which is `yoyodyne fit`); the last
line of the output has the counts, as JSON. The code here only chooses its settings and counts.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import callbacks
from step_meter import StepMeter
from yoyodyne import special
from yoyodyne.cli import main as yoyodyne

ENCODER = "yoyodyne.models.modules.LSTMEncoder"


class Meter(callbacks.Callback):
    """Counts the target tokens of each batch as a training step begins."""

    def __init__(self, meter: StepMeter) -> None:
        self.meter = meter
        self.parameters = 0

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, number: int) -> None:
        self.parameters = sum(parameter.numel() for parameter in module.parameters())
        self.meter.begins(int(batch.target.tensor.ne(special.PAD_IDX).sum()))


def main(job: dict[str, Any]) -> dict[str, float]:
    torch.set_num_threads(1)
    folder = Path(job["model"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    counting = Meter(StepMeter(job["warm_up"], job["steps"]))
    given = Path(folder, "config.json")
    given.write_text(json.dumps(settings(job, counting.meter.steps_to_train)))

    # Its command makes the trainer itself: the callback joins those that it is given.
    trainer = yoyodyne.trainers.Trainer
    original = trainer.fit

    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.callbacks.append(counting)
        return original(self, *args, **kwargs)

    trainer.fit = fit
    yoyodyne.python_interface(["fit", "--config", str(given)])
    return {"parameters": counting.parameters, **counting.meter.found()}


def settings(job: dict[str, Any], steps: int) -> dict[str, Any]:
    """The job as yoyodyne's own config. What is not named has its default."""
    width = {"embedding_size": job["embedding"]}
    encoder = {**width, "hidden_size": job["encoder"], "dropout": job["dropout"]}
    model = {
        **width,
        **job["settings"],
        "decoder_hidden_size": job["decoder"],
        "decoder_dropout": job["dropout"],
        "source_encoder": {"class_path": ENCODER, "init_args": encoder},
        "optimizer": {
            "class_path": "yoyodyne.optimizers.Adam",
            "init_args": {"lr": job["learning_rate"]},
        },
    }
    return {
        "seed_everything": job["seed"],
        "data": {
            "model_dir": job["model"],
            "train": str(Path(job["text"]) / "train.tsv"),
            "batch_size": job["batch_size"],
        },
        "model": {"class_path": f"yoyodyne.models.{job['class']}", "init_args": model},
        "trainer": {
            "max_steps": steps,
            "accelerator": "cpu",
            "logger": False,
            "default_root_dir": job["model"],
            "enable_progress_bar": False,
            "gradient_clip_val": job["clip"],
        },
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
