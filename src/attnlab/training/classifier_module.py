"""The classifier's LightningModule: what happens at a step, and nothing else."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from torch import Tensor
from torchmetrics import MeanMetric

from attnlab.batch import LabelledBatch
from attnlab.model.classifier import Classifier
from attnlab.training.class_metrics import ClassMetrics
from attnlab.training.classification import VALIDATION, ClassificationTraining
from attnlab.training.divergence import NAN_STAYS, check_finite, check_validation
from attnlab.training.loss import smoothed_nll
from attnlab.training.stepping import (
    clip_and_log,
    log_mean_of_epoch,
    optimizer_and_schedule,
    share_of_a_process,
    step_plateau,
)
from attnlab.training.stopping import is_recorded


class ClassifierModule(pl.LightningModule):
    """Trains a classifier, and validates it.

    confusions: of the last validation, over all processes: (C, C) long, row i, column j counts class i taken for j.
    """

    confusions: Tensor

    def __init__(self, model: Classifier, settings: ClassificationTraining, num_classes: int) -> None:
        super().__init__()
        self.model = model
        self.settings = settings
        self.metrics = ClassMetrics(num_classes)
        self.training_nll = MeanMetric(nan_strategy=NAN_STAYS)

    def training_step(self, batch: LabelledBatch, batch_index: int) -> Tensor:
        found = self.model(batch.source, batch.source_mask)
        loss, nll = smoothed_nll(found.log_probabilities, batch.labels, self.settings.label_smoothing)
        sentences = len(batch)
        self.training_nll.update(nll.detach() / sentences, weight=sentences)
        if is_recorded(self, self.settings):
            self.log("train/nll", nll.detach() / sentences)
            if loss is not nll:
                self.log("train/loss", loss.detach() / sentences)
        return loss / share_of_a_process(self, sentences)

    def on_train_batch_end(self, *args: Any) -> None:
        log_mean_of_epoch(self, "train/epoch_nll", self.training_nll)

    def validation_step(self, batch: LabelledBatch, batch_index: int) -> None:
        self.metrics.update(self.model(batch.source, batch.source_mask).log_probabilities, batch.labels)

    def on_validation_epoch_end(self) -> None:
        measured = {f"{VALIDATION}/{name}": value for name, value in self.metrics.compute().items()}
        check_validation(self, measured[f"{VALIDATION}/nll"])
        self.log_dict(measured)
        self.confusions = self.metrics.confusions()
        self.metrics.reset()
        step_plateau(self, self.settings, measured)

    def on_before_backward(self, loss: Tensor) -> None:
        check_finite(self, "the loss", loss, self.settings)

    def configure_gradient_clipping(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        clip_and_log(self, optimizer, self.settings)

    def configure_optimizers(self) -> Any:
        return optimizer_and_schedule(self, self.settings)
