"""One bar for the whole training: how far, how fast, how good, how long still."""

from __future__ import annotations

import logging
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ProgressBar
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

_TRAINING = ("train/token_nll", "train/nll")  # of a translation model, of a classifier
_UNTOLD = "perplexity"  # it says what the token nll said

_log = logging.getLogger(__name__)


class TrainingProgress(ProgressBar):
    """A bar over all steps, a second one while validation decodes, and a line for each validation.

    Where the output is no terminal only the lines are written. They go to the log of the run, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._console = Console(stderr=True)
        self._progress: Progress | None = None
        self._training: TaskID | None = None
        self._validation: TaskID | None = None
        self._enabled = True

    def disable(self) -> None:
        """Lightning calls this in every process but the first."""
        self._enabled = False

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not self._enabled:
            return
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[state]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._progress.start()
        total = int(trainer.estimated_stepping_batches)
        self._training = self._progress.add_task("train", total=total, state="", completed=trainer.global_step)

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *args: Any) -> None:
        if self._progress is None or self._training is None:
            return
        # Reading a metric waits for the device, so only the steps that are logged anyway show it.
        if trainer.global_step % pl_module.settings.log_every == 0:
            nll = [trainer.callback_metrics[name] for name in _TRAINING if name in trainer.callback_metrics]
            state = f"epoch {trainer.current_epoch}" + (f" · nll {float(nll[0]):.3f}" if nll else "")
            self._progress.update(self._training, state=state)
        self._progress.update(self._training, completed=trainer.global_step)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._progress is not None:
            total = sum(int(batches) for batches in trainer.num_val_batches)
            self._validation = self._progress.add_task("validate", total=total, state="")

    def on_validation_batch_end(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        if self._progress is not None and self._validation is not None:
            self._progress.advance(self._validation)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._progress is None or self._validation is None:
            return
        self._progress.remove_task(self._validation)
        self._validation = None
        names = sorted(name for name in trainer.callback_metrics if name.startswith("validation/"))
        words = [
            f"{short.replace('_nll', ' nll')} {float(trainer.callback_metrics[name]):.3f}"
            for name in sorted(names, key=lambda name: "nll" not in name)
            if (short := name.rpartition("/")[2]) != _UNTOLD
        ]
        line = f"step {trainer.global_step:>6}  validation: " + " · ".join(words)
        self._console.print(line, highlight=False, soft_wrap=True)
        _log.info(line)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._stop()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
