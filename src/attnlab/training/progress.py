"""The progress of a training on the terminal: a bar with the time left, and a line for each validation.

Lightning's own bars count the batches of an epoch. Our trainings are measured in steps, and validate in mid-epoch.
"""

from __future__ import annotations

import logging
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_TRAINING = ("train/token_nll", "train/nll")  # of translation, of classification

_log = logging.getLogger(__name__)


class TrainingProgress(ProgressBar):
    """A bar over all steps and one for the current validation, on terminals only; validation results in any case.

    The results also go to the log of the run.
    """

    def __init__(self) -> None:
        super().__init__()
        self._console = Console(stderr=True)
        self._bars: Progress | None = None
        self._enabled = True

    def disable(self) -> None:
        """Lightning calls this in every process but the first."""
        self._enabled = False

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not self._enabled:
            return
        self._bars = Progress(
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
        self._training = self._bars.add_task("train", total=trainer.max_steps, state="", completed=trainer.global_step)
        self._validation = self._bars.add_task("validate", visible=False, state="")
        self._bars.start()

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        if self._bars is None:
            return
        self._bars.update(self._training, completed=trainer.global_step)
        if trainer.global_step % pl_module.settings.log_every == 0:  # reading a metric waits for the device
            nll = [trainer.callback_metrics[name] for name in _TRAINING if name in trainer.callback_metrics]
            state = f"epoch {trainer.current_epoch}" + (f" · nll {float(nll[0]):.3f}" if nll else "")
            self._bars.update(self._training, state=state)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._bars is not None:
            self._bars.reset(self._validation, total=sum(map(int, trainer.num_val_batches)), visible=True)

    def on_validation_batch_end(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        if self._bars is not None:
            self._bars.advance(self._validation)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._bars is None:
            return
        self._bars.update(self._validation, visible=False)
        names = sorted(name for name in trainer.callback_metrics if name.startswith("validation/"))
        words = " · ".join(
            f"{name.rpartition('/')[2].replace('_nll', ' nll')} {float(trainer.callback_metrics[name]):.3f}"
            for name in sorted(names, key=lambda name: "nll" not in name)
            if not name.endswith("perplexity")  # exp of the NLL
        )
        line = f"step {trainer.global_step:>6}  validation: {words}"
        self._console.print(line, highlight=False, soft_wrap=True)
        _log.info(line)

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def on_exception(self, *args: Any, **kwargs: Any) -> None:
        self.on_train_end()
