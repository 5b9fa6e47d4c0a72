"""What the LightningModules of all tasks share: what surrounds a training step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torchmetrics import MeanMetric

from attnlab.errors import ExperimentError
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.trial_pass import own_classes
from attnlab.training.frozen import freeze
from attnlab.training.optimisation import make_scheduler
from attnlab.training.reinforcement import Reinforcement
from attnlab.training.settings import Training

_REMEDY = (
    "try a smaller training.optimizer.lr, training.gradient_clip=1.0 or "
    "hardware.precision=32; the last checkpoint holds the state before"
)


@dataclass
class PartSums:
    """Sums over the parts of a batch that were computed so far.

    number: how many parts.
    count: their tokens or sentences.
    sums: their sums to log.
    """

    number: int = 0
    count: int = 0
    sums: dict[str, Tensor] = field(default_factory=dict)

    def add(self, count: int, sums: Mapping[str, Tensor]) -> None:
        self.number += 1
        self.count += count
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0) + value.detach()


class WeightedMean(MeanMetric):
    """torchmetrics' mean without its check for NaN, which waits for a GPU at each step.

    NaN stays NaN, as it should: dropped, it would hide a diverged training.
    """

    def update(self, value: float | Tensor, weight: float | Tensor | None = None) -> None:
        """Add a value (), whose weight is its tokens or sentences; without one it counts once."""
        share = 1 if weight is None else weight
        self.mean_value += value * share
        self.weight += share


class LabModule(pl.LightningModule):
    """The base class of the tasks' modules: what surrounds a training step.

    It clips, logs, schedules, divides the loss, and stops a diverged training.

    Args:
        drawing: the normaliser of the model's attention, where it draws weights.

    epoch_metric: the name of the mean NLL over an epoch.
    training_nll: that mean so far.
    reinforcement: how it learns from attention weights that are drawn; None where none are.
    """

    epoch_metric: ClassVar[str]

    def __init__(self, model: Any, settings: Training, drawing: Normaliser | None = None) -> None:
        super().__init__()
        freeze(model, settings.frozen)
        self.model = model
        self.settings: Any = settings
        self.training_nll = WeightedMean()
        self._parts = PartSums()
        self.reinforcement = None if drawing is None else Reinforcement(drawing)

    @classmethod
    def load_from_checkpoint(cls, *args: Any, **kwargs: Any) -> Any:
        """Raises ExperimentError: a module cannot be built from a checkpoint alone.

        A checkpoint has no tokenizers, and does not record the arguments of its module.
        """
        raise ExperimentError(
            "a checkpoint holds the state of a training, to go on from with the same command; load "
            'the trained model with attnlab.load("<runs/points/identity>/model"), and see '
            "training.initial_weights to train it further"
        )

    @property
    def is_recorded(self) -> bool:
        """Whether this step's metrics are logged.

        Lightning would collect those of all steps, which takes time. Metrics of a step before a
        validation or the end of an epoch are for callbacks that monitor them: Lightning writes them
        to no logger.
        """
        step = self.global_step + 1
        is_logged = step % self.settings.log_every == 0
        is_last = step >= self.trainer.max_steps or self.trainer.is_last_batch
        validate_every = self.settings.validate_every
        is_validated = validate_every is not None and step % validate_every == 0
        return is_logged or is_last or is_validated

    def configure_optimizers(self) -> Any:
        settings = self.settings
        total_steps = int(self.trainer.estimated_stepping_batches)
        optimizer = settings.optimizer(self.parameters())
        entry = make_scheduler(
            settings.schedule,
            optimizer,
            total_steps,
            settings.monitored_metric,
            settings.monitor_mode,
        )
        return {"optimizer": optimizer, "lr_scheduler": entry}

    def on_before_backward(self, loss: Tensor) -> None:
        self.check_finite("the loss", loss)

    def configure_gradient_clipping(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        """Clip by the norm over all parameters, and log the norm before clipping.

        A limit of 0 does not clip.
        """
        if self.settings.accumulate > 1:
            count = self.count_per_process(self._parts.count)
            for parameter in self.parameters():
                if parameter.grad is not None:
                    parameter.grad /= count

        limit = self.settings.gradient_clip or torch.inf
        norm = torch.nn.utils.clip_grad_norm_(self.parameters(), limit)
        self.check_finite("the gradient's norm", norm)
        if self.is_recorded:
            self.log("train/gradient_norm", norm)
            self.log("train/learning_rate", optimizer.param_groups[0]["lr"])

    def on_train_batch_end(self, *args: Any) -> None:
        """Log the mean over the epoch's steps so far, when an epoch or the training ends.

        It is logged after the last step, because Lightning's own end of an epoch comes after the
        last checkpoint: a training killed in between would lose the mean.
        """
        trainer = self.trainer
        if not (trainer.is_last_batch or trainer.global_step >= trainer.max_steps):
            return
        # In every process, because it is the mean over all of them
        value = float(self.training_nll.compute())
        self.training_nll.reset()
        metrics = {self.epoch_metric: value, "epoch": trainer.current_epoch}
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step=trainer.global_step - 1)

    def log_validation(self, nll: Tensor, measured: Mapping[str, Any]) -> None:
        """Log a validation, and pass the monitored metric to a plateau schedule.

        Raises ExperimentError, before any checkpoint is written, if its loss is not finite.
        """
        if not bool(nll.isfinite()):
            raise ExperimentError(
                f"training diverged before step {self.global_step + 1}: the validation's loss is "
                f"{nll.item()}; {_REMEDY}{_look_into_own_parts(self)}"
            )
        self.log_dict(dict(measured))
        scheduler = self.lr_schedulers()
        is_judged = self.global_step > self.settings.preliminary_steps
        if is_judged and isinstance(scheduler, ReduceLROnPlateau):
            scheduler.step(measured[self.settings.monitored_metric])

    def count_per_process(self, count: int) -> float:
        """The mean number of tokens or sentences per process in this global batch.

        `count` is this process's own number. Processes average their gradients. With the same
        divisor in each, the average is the gradient of the mean over the whole global batch.
        """
        if self.trainer.world_size == 1:
            return count
        total = torch.tensor(float(count), device=self.device)
        torch.distributed.all_reduce(total)
        return total.item() / self.trainer.world_size

    def mean_over_batch(self, loss: Tensor, count: int, shown: Mapping[str, Tensor]) -> Tensor:
        """The result of a training step, whose gradient is that of the mean over the whole batch.

        With `accumulate`, parts hold different counts. So their gradients are summed, and divided
        once by the count of all (in `configure_gradient_clipping`); a mean of the parts' means
        would weigh the tokens of a short part more.

        Args:
            loss: the sum over this part of the batch, the whole batch unless `accumulate` divides
                it.
            count: its tokens or sentences.
            shown: sums whose means over the batch are logged, by their names.
        """
        accumulate = self.settings.accumulate
        if self._parts.number == accumulate:  # of the batch before
            self._parts = PartSums()
        self._parts.add(count, shown)
        if self._parts.number == accumulate:
            self._end_batch()

        if accumulate == 1:
            return loss / self.count_per_process(count)
        return loss * accumulate  # Lightning divides by it

    def _end_batch(self) -> None:
        """Log the means over all parts of the batch, and let the rewards' means move on."""
        if self.is_recorded:
            for name, value in self._parts.sums.items():
                self.log(f"train/{name}", value / self._parts.count)
        if self.reinforcement is not None:
            self.reinforcement.end_step()

    def check_finite(self, what: str, value: Tensor) -> None:
        """Raise ExperimentError if a step's loss or gradient norm is not finite.

        It is called before the optimiser uses the value. On an accelerator, where reading a value
        waits for the device, it checks only steps whose metrics are logged.
        """
        if value.device.type != "cpu" and not self.is_recorded:
            return
        if bool(value.isfinite()):
            return
        raise ExperimentError(
            f"training diverged in step {self.global_step + 1} (epoch {self.current_epoch}): "
            f"{what} is {value.item()}; {_REMEDY}{_look_into_own_parts(self)}"
        )


def _look_into_own_parts(module: nn.Module) -> str:
    """What more to try where a model has parts of the user's own; empty where it has none."""
    own = own_classes(module)
    if not own:
        return ""
    return (
        f". Or look for a division, a root or a logarithm in {', '.join(own)}: "
        "trainer=anomaly names the line"
    )


def check_weights(module: pl.LightningModule) -> None:
    """Raise ExperimentError, before a checkpoint is written, if a weight is not finite."""
    for name, weight in module.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise ExperimentError(
                f"training diverged before step {module.global_step + 1}: {name} is no longer "
                f"finite; {_REMEDY}"
            )
