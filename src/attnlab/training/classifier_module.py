"""The LightningModule of classification: its training step, its validation and their metrics."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from torch import Tensor
from torchmetrics import MeanMetric

from attnlab.batch import LabelledBatch
from attnlab.model.classifier import Classifier
from attnlab.training.class_metrics import ClassMetrics
from attnlab.training.loss import smoothed_nll
from attnlab.training.settings import CLASSIFIED, ClassificationTraining
from attnlab.training.stepping import (
    KEEP_NAN,
    check_finite,
    check_validation,
    clip_and_log,
    count_per_process,
    is_recorded,
    log_mean_of_epoch,
    optimizer_and_schedule,
    step_plateau,
)


class ClassifierModule(pl.LightningModule):
    """Trains and validates a classifier.

    confusions: of the last validation, over all processes: (C, C) long, row i, column j counts class i classified as j.
    """

    confusions: Tensor

    def __init__(self, model: Classifier, settings: ClassificationTraining, num_classes: int) -> None:
        super().__init__()
        self.model = model
        self.settings = settings
        self.metrics = ClassMetrics(num_classes)
        self.training_nll = MeanMetric(nan_strategy=KEEP_NAN)

    def training_step(self, batch: LabelledBatch, batch_index: int) -> Tensor:
        log_probabilities = self.model(batch.source, batch.source_mask).log_probabilities
        loss, nll = smoothed_nll(log_probabilities, batch.labels, self.settings.label_smoothing)
        sentences = len(batch)
        self.training_nll.update(nll.detach() / sentences, weight=sentences)
        if is_recorded(self, self.settings):
            self.log("train/nll", nll.detach() / sentences)
            if loss is not nll:
                self.log("train/loss", loss.detach() / sentences)
        return loss / count_per_process(self, sentences)

    def on_train_batch_end(self, *args: Any) -> None:
        log_mean_of_epoch(self, "train/epoch_nll", self.training_nll)

    def validation_step(self, batch: LabelledBatch, batch_index: int) -> None:
        self.metrics.update(self.model(batch.source, batch.source_mask).log_probabilities, batch.labels)

    def on_validation_epoch_end(self) -> None:
        measured = {f"{CLASSIFIED}/{name}": value for name, value in self.metrics.compute().items()}
        check_validation(self, measured[f"{CLASSIFIED}/nll"])
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
