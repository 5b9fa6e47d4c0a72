"""Progress of a training on the terminal: a bar over its steps and a line per validation."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytorch_lightning as pl

from attnlab.progress import terminal_bars

_log = logging.getLogger(__name__)


class TrainingBar(pl.Callback):
    """A bar over all steps with the time left.

    Lightning's own bars count the batches of one epoch.
    """

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._bars = terminal_bars(hidden=not trainer.is_global_zero)
        self._steps = self._bars.add_task(
            "training", total=trainer.max_steps, completed=trainer.global_step
        )
        self._bars.start()

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        self._bars.update(self._steps, completed=trainer.global_step)

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        self._bars.stop()

    def on_exception(self, *args: Any, **kwargs: Any) -> None:
        if hasattr(self, "_bars"):
            self._bars.stop()


class ValidationLines(pl.Callback):
    """Prints and logs a line for each validation, also without a terminal for a progress bar."""

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        values = {}
        for logged, value in trainer.callback_metrics.items():
            # The perplexity is the exponential of the NLL.
            if not logged.startswith("validation/") or logged.endswith("perplexity"):
                continue
            name = logged.rpartition("/")[2].replace("_nll", " nll")
            values[name] = float(value)
        nll_first = sorted(values, key=lambda name: ("nll" not in name, name))
        words = " · ".join(f"{name} {values[name]:.3f}" for name in nll_first)
        line = f"step {trainer.global_step:>6}  validation: {words}"
        print(line, file=sys.stderr)
        _log.info(line)
