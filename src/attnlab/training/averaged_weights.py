"""The moving average of the weights: `training.average_decay`."""

from __future__ import annotations

import pytorch_lightning as pl
from pytorch_lightning.callbacks import WeightAveraging
from torch import Tensor


class AveragedWeights(WeightAveraging):
    """An exponential moving average of the weights.

    Validations, their pictures and checkpoints use it.
    """

    # Lightning's own class restores the plain weights before `on_validation_end` draws pictures.
    on_validation_epoch_start = on_validation_epoch_end = pl.Callback.on_validation_epoch_end
    on_validation_start = WeightAveraging.on_validation_epoch_start
    on_validation_end = WeightAveraging.on_validation_epoch_end

    def __init__(self, decay: float) -> None:
        # The decay starts low and grows, as in TensorFlow. Otherwise the first weights would
        # outweigh those of hundreds of steps.
        def average(mean: Tensor, weights: Tensor, n: Tensor | int) -> Tensor:
            kept = min(decay, float((1 + n) / (10 + n)))
            return mean.lerp(weights, 1 - kept)

        super().__init__(use_buffers=False, avg_fn=average)
