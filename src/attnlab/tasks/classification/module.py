"""The LightningModule of classification: training, validation and metrics."""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.batch import LabelledBatch
from attnlab.model.classifier import Classifier
from attnlab.model.outputs.likelihood import each_smoothed_nll, smoothed_nll
from attnlab.tasks.classification.metrics import ClassMetrics
from attnlab.tasks.classification.settings import CLASSIFIED, ClassificationTraining
from attnlab.training.attention_losses.attention_loss import Looks
from attnlab.training.module import LabModule
from attnlab.training.reinforcement import DRAW_ENTROPY


class ClassifierModule(LabModule):
    """Trains and validates a classifier.

    confusions: of the last validation, over all processes: (C, C) long, row i, column j counts
        class i classified as j.
    """

    epoch_metric = "train/epoch_nll"
    confusions: Tensor | None  # (C, C) of the last validation

    def __init__(
        self, model: Classifier, settings: ClassificationTraining, num_classes: int
    ) -> None:
        super().__init__(model, settings, model.attention.drawing)
        self.metrics = ClassMetrics(num_classes)
        self.confusions = None

    def training_step(self, batch: LabelledBatch, batch_index: int) -> Tensor:
        found = self.model(batch.source, batch.source_mask)
        smoothing = self.settings.label_smoothing
        loss, nll = smoothed_nll(found.log_probabilities, batch.labels, smoothing)
        sentences, shown = len(batch), {"nll": nll}
        if self.reinforcement is not None and found.drawn is not None:
            each = each_smoothed_nll(found.log_probabilities, batch.labels, smoothing)
            once = torch.ones_like(found.drawn.entropy, dtype=torch.bool)  # (B, 1)
            loss = loss + self.reinforcement(each.loss.unsqueeze(1), once, found.drawn)
            shown[DRAW_ENTROPY] = self.reinforcement.entropy_of(once, found.drawn)
        attention_loss = self.settings.attention_loss
        if attention_loss is not None:
            on_weights = attention_loss.summed(self.looks(batch, found.attention_weights))
            loss = loss + attention_loss.weight * on_weights
            shown[attention_loss.name] = on_weights
        if smoothing or len(shown) > 1:
            shown["loss"] = loss
        self.training_nll.update(nll.detach() / sentences, weight=sentences)
        return self.mean_over_batch(loss, sentences, shown)

    def looks(self, batch: LabelledBatch, weights: Tensor) -> Looks:
        """Where the batch looked with weights (B, S): once a sentence."""
        once = batch.labels.new_ones(len(batch), 1, dtype=torch.bool)
        return Looks(weights.unsqueeze(1), batch.source, batch.source_mask, once)

    def validation_step(self, batch: LabelledBatch, batch_index: int) -> None:
        self.metrics.update(
            self.model(batch.source, batch.source_mask).log_probabilities, batch.labels
        )

    def on_validation_epoch_end(self) -> None:
        measured = {f"{CLASSIFIED}/{name}": value for name, value in self.metrics.compute().items()}
        self.confusions = self.metrics.confusions()
        self.metrics.reset()
        self.log_validation(measured[f"{CLASSIFIED}/nll"], measured)
