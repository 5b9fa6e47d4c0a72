"""LightningModules of translation with a fault."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from attnlab.batch import Batch
from attnlab.tasks.translation.module import Seq2SeqModule


class DividingByAllPlaces(Seq2SeqModule):
    """A training whose loss is a mean over all places of a batch, pads among them."""

    _places: int

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        self._places = batch.target_mask.numel()
        return super().training_step(batch, batch_index)

    def mean_over_batch(self, loss: Tensor, count: int, shown: Mapping[str, Tensor]) -> Tensor:
        return super().mean_over_batch(loss * (count / self._places), count, shown)
