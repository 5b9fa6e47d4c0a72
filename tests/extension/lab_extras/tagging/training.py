"""The training of a tagger: its settings and its LightningModule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torch import Tensor
from torch.nn.functional import nll_loss
from torchmetrics import MeanMetric

from attnlab.training.module import LabModule
from attnlab.training.settings import Training
from lab_extras.tagging.data import NO_TAG, TaggedBatch
from lab_extras.tagging.model import Tagger


@dataclass(frozen=True)
class TaggingTraining(Training):
    """Training of a tagger; accuracy and `nll` are means over the words."""

    monitor: Literal["accuracy", "nll"]

    @property
    def monitored_metric(self) -> str:
        return f"validation/{self.monitor}"


class TaggingModule(LabModule):
    """Trains and validates a tagger."""

    epoch_metric = "train/epoch_nll"

    def __init__(self, model: Tagger, settings: TaggingTraining) -> None:
        super().__init__(model, settings)
        self.nll = MeanMetric(nan_strategy=math.nan)
        self.accuracy = MeanMetric()

    def training_step(self, batch: TaggedBatch, batch_index: int) -> Tensor:
        found = self.model(batch.source, batch.source_mask)
        loss = summed_nll(found.log_probabilities, batch.tags)
        words = int((batch.tags != NO_TAG).sum())
        self.training_nll.update(loss.detach() / words, weight=words)
        return self.mean_over_batch(loss, words, {"nll": loss})

    def validation_step(self, batch: TaggedBatch, batch_index: int) -> None:
        found = self.model(batch.source, batch.source_mask)
        is_word = batch.tags != NO_TAG
        words = int(is_word.sum())
        is_right = found.log_probabilities.argmax(-1) == batch.tags
        self.nll.update(summed_nll(found.log_probabilities, batch.tags) / words, weight=words)
        self.accuracy.update(is_right[is_word].float())

    def on_validation_epoch_end(self) -> None:
        nll = self.nll.compute()
        accuracy = self.accuracy.compute()
        self.nll.reset()
        self.accuracy.reset()
        self.log_validation(nll, {"validation/nll": nll, "validation/accuracy": accuracy})


def summed_nll(log_probabilities: Tensor, tags: Tensor) -> Tensor:
    """Minus log P of the right tags, summed over the words; (B, S, G) and (B, S)."""
    return nll_loss(
        log_probabilities.flatten(0, 1), tags.flatten(), ignore_index=NO_TAG, reduction="sum"
    )
