"""A callback that slows a training down, and writes down what it did."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl


class RecordedSteps(pl.Callback):
    """Appends a line for each start, step and end of a training to `events.jsonl`.

    While a file `hold` lies in the command's folder, a training takes no further step.

    seconds: that each step takes longer.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._path = Path("events.jsonl").absolute()  # of the command's folder
        self._hold = Path("hold").absolute()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._write(trainer, "start")

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        self._write(trainer, "step")
        time.sleep(self._seconds)
        while self._hold.exists():
            time.sleep(0.1)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._write(trainer, "end")

    def _write(self, trainer: pl.Trainer, event: str) -> None:
        if not trainer.is_global_zero:
            return
        checkpoints = Path(str(trainer.checkpoint_callback.dirpath))  # type: ignore[union-attr]
        line = {
            "point": checkpoints.parent.name,
            "event": event,
            "step": trainer.global_step,
            "node": os.environ.get("SLURMD_NODENAME"),
            "pid": os.getpid(),
            "time": time.time(),
        }
        # One write of a short line is atomic, also beside those of other processes.
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")
