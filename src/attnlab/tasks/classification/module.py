"""The LightningModule of classification: training, validation and metrics."""

from __future__ import annotations

from torch import Tensor

from attnlab.batch import LabelledBatch
from attnlab.model.classifier import Classifier
from attnlab.tasks.classification.metrics import ClassMetrics
from attnlab.tasks.classification.settings import CLASSIFIED, ClassificationTraining
from attnlab.training.loss import smoothed_nll
from attnlab.training.module import LabModule


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
        super().__init__(model, settings)
        self.metrics = ClassMetrics(num_classes)
        self.confusions = None

    def training_step(self, batch: LabelledBatch, batch_index: int) -> Tensor:
        log_probabilities = self.model(batch.source, batch.source_mask).log_probabilities
        loss, nll = smoothed_nll(log_probabilities, batch.labels, self.settings.label_smoothing)
        sentences = len(batch)
        self.training_nll.update(nll.detach() / sentences, weight=sentences)
        return self.mean_over_batch(
            loss, sentences, {"nll": nll} if loss is nll else {"nll": nll, "loss": loss}
        )

    def validation_step(self, batch: LabelledBatch, batch_index: int) -> None:
        self.metrics.update(
            self.model(batch.source, batch.source_mask).log_probabilities, batch.labels
        )

    def on_validation_epoch_end(self) -> None:
        measured = {f"{CLASSIFIED}/{name}": value for name, value in self.metrics.compute().items()}
        self.confusions = self.metrics.confusions()
        self.metrics.reset()
        self.log_validation(measured[f"{CLASSIFIED}/nll"], measured)
