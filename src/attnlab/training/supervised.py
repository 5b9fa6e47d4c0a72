"""Lightning's Trainer, whose `fit` ends with errors that say what to do."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException, SIGTERMException

from attnlab.errors import ExperimentError
from attnlab.terminal import log
from attnlab.training.checkpoints import BestCheckpoints
from attnlab.training.processes import explain_out_of_memory, supervise_forked


class SupervisedTrainer(pl.Trainer):
    """A Trainer whose `fit` either succeeds or ends with an error that the user can fix.

    callbacks_by_name: those of the config, by their names there.
    """

    callbacks_by_name: Mapping[str, pl.Callback] = {}

    @property
    def best_checkpoints(self) -> BestCheckpoints:
        """The callback that knows the best checkpoints of the training."""
        callbacks: list[pl.Callback] = self.callbacks  # type: ignore[attr-defined]
        return next(each for each in callbacks if isinstance(each, BestCheckpoints))

    def fit(
        self,
        model: pl.LightningModule,
        train_dataloaders: Any = None,
        val_dataloaders: Any = None,
        datamodule: pl.LightningDataModule | None = None,
        ckpt_path: Any = None,
        weights_only: bool | None = None,
    ) -> None:
        """Train to the end, as Lightning's own; `ckpt_path` is of a checkpoint of attnlab's.

        Raises:
            ExperimentError: the training failed.
            KeyboardInterrupt: Ctrl-C stopped it.
            SystemExit: another signal stopped it.
        """
        # Ours hold plain numbers and tensors, which need no pickles.
        if weights_only is None and ckpt_path is not None:
            weights_only = True
        start = "from scratch" if ckpt_path is None else f"from {ckpt_path}"
        log.info("training: at most %d steps; %s", self.max_steps, start)
        advice = (
            "try a smaller training.batching.size, a smaller model or hardware.precision=auto; the "
            "last checkpoint is kept"
        )
        try:
            with supervise_forked(self), explain_out_of_memory(advice):
                super().fit(
                    model, train_dataloaders, val_dataloaders, datamodule, ckpt_path, weights_only
                )
        except SIGTERMException:
            # By itself it would end with 0, which DVC takes for success.
            sys.exit(128 + signal.SIGTERM)
        except RuntimeError as error:
            # A user's callback failed to log the metric. Metrics that no callback logs are found
            # earlier, when the config is checked.
            if not str(error).startswith("Early stopping conditioned on metric"):
                raise
            raise ExperimentError(f"callbacks: {error}") from error
        except MisconfigurationException as error:
            name = self._callback_that_raised(error)
            if name is None:
                raise
            raise ExperimentError(f"callbacks.{name}: {' '.join(str(error).split())}") from error
        except SystemExit as stop:
            # Of a second Ctrl-C, Lightning makes an exit with code 1.
            if not self.interrupted or stop.code not in (1, 128 + signal.SIGINT):
                raise
            raise KeyboardInterrupt from None

        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()  # only the first process evaluates
        self._check_end()

    def _check_end(self) -> None:
        if self.state.status != "finished":
            raise ExperimentError(f"training was interrupted after {self.global_step} steps")
        if not self.best_checkpoints.best_model_path:
            raise ExperimentError(
                f"callbacks: one of them stopped the training at step {self.global_step}, before "
                "its first validation; leave it out, or let it stop the training after a step"
            )

    def _callback_that_raised(self, error: Exception) -> str | None:
        """The name of the callback in one of whose methods an error was raised."""
        for frame, _ in traceback.walk_tb(error.__traceback__):
            for name, callback in self.callbacks_by_name.items():
                if frame.f_locals.get("self") is callback:
                    return name
        return None
