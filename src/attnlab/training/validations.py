"""When Lightning validates, and when it stops."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Checkpoint, EarlyStopping


class ValidateEachEpoch(pl.Callback):
    """Validates at the end of each epoch, where epochs have different numbers of batches.

    Lightning validates where the number of all batches so far is a multiple of `val_check_batch`;
    so that is the number at the end of the epoch.
    """

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # A training that resumes at the end of an epoch has validated already.
        self._set_end(trainer)

    def on_train_batch_start(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        self._set_end(trainer)

    def _set_end(self, trainer: pl.Trainer) -> None:
        started = trainer.fit_loop.epoch_loop.batch_progress
        of_earlier_epochs = started.total.ready - started.current.ready
        trainer.val_check_batch = of_earlier_epochs + trainer.num_training_batches


class ValidateAtTheEnd(Checkpoint):
    """Validates after the last step, even if it is not a multiple of `validate_every`.

    It writes nothing. It is a Checkpoint, and the last one, because at the end of an epoch
    Lightning calls those after all others: by then every callback that stops a training has done
    so.
    """

    def __init__(self) -> None:
        self._validated_step = -1
        # The step at whose end of an epoch a callback stopped the training
        self._stop_after: int | None = None

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any, **kwargs: Any) -> None:
        is_asked = self._stop_after is not None and trainer.global_step > self._stop_after
        if is_asked or trainer.global_step >= trainer.max_steps:
            trainer.should_stop = True  # Lightning validates before it stops

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._validated_step = trainer.global_step

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # If stopped here, Lightning would not validate again. So the training makes one more step,
        # and then stops as usual.
        if trainer.should_stop and self._validated_step != trainer.global_step:
            trainer.should_stop = False
            self._stop_after = trainer.global_step


class Patience(EarlyStopping):
    """Early stopping that also stops a resumed training whose patience has already run out.

    It had run out at the last checkpoint.

    preliminary_steps: validations up to this step are passed over.
    """

    def __init__(self, monitor: str, *, preliminary_steps: int = 0, **arguments: Any) -> None:
        super().__init__(monitor, **arguments)
        self._preliminary_steps = preliminary_steps

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.global_step > self._preliminary_steps:
            super().on_validation_end(trainer, pl_module)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.wait_count >= self.patience:
            trainer.should_stop = True
