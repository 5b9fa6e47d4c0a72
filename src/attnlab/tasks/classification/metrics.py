"""Metrics of classified sentences: accuracy, F1, negative log-likelihood and confusions.

torchmetrics computes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torchmetrics import MeanMetric
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
)

from attnlab.evaluation.sentence_statistics import CorpusMetric, MacroF1, Share

SIGNATURES = {
    "accuracy": (
        "share of sentences whose likeliest class is their label; torchmetrics MulticlassAccuracy, "
        "micro"
    ),
    "f1": "F1 of each class, mean over the classes; torchmetrics MulticlassF1Score, macro",
    "nll": "nats, mean over sentences of -log P(label)",
}


class ClassMetrics(nn.Module):
    """Metrics accumulated over batches and processes.

    Two classes are treated like any other number. `compute` gives `accuracy`, `f1` (macro) in 0..1
    and `nll` in nats a sentence.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.accuracy = MulticlassAccuracy(num_classes, average="micro")
        self.f1 = MulticlassF1Score(num_classes, average="macro")
        self.confusion = MulticlassConfusionMatrix(num_classes)
        # By default torchmetrics drops NaN, which would hide a diverged sentence.
        self.nll = MeanMetric(nan_strategy=math.nan)

    def update(self, log_probabilities: Tensor, labels: Tensor) -> None:
        """Add sentences: log_probabilities (B, C), labels (B,)."""
        predictions = log_probabilities.argmax(-1)
        for metric in (self.accuracy, self.f1, self.confusion):
            metric.update(predictions, labels)
        self.nll.update(-log_probabilities.gather(1, labels.unsqueeze(1)))

    def compute(self) -> dict[str, Tensor]:
        return {
            "accuracy": self.accuracy.compute(),
            "f1": self.f1.compute(),
            "nll": self.nll.compute(),
        }

    def confusions(self) -> Tensor:
        """The confusion matrix, (C, C) long.

        Row i, column j counts the sentences of class i that were classified as j.
        """
        confusions = self.confusion.compute()
        assert isinstance(confusions, torch.Tensor)
        return confusions

    def reset(self) -> None:
        for metric in (self.accuracy, self.f1, self.confusion, self.nll):
            metric.reset()


def sentence_metrics(labels: Sequence[str]) -> dict[str, CorpusMetric]:
    """The metrics of `ClassMetrics` that follow from predictions alone."""
    return {"accuracy": Share("correct"), "f1": MacroF1(labels)}
