"""The coins: at which positions of a batch the decoder is fed the reference.

A coin depends on the experiment's seed, the step, and the pair (and, tossed for a token, its place among the pair's
tokens): not on the pads, nor on which process has which share of a global batch, so that several processes toss
the same coins as one, and the coins of a `batch` are one for all processes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attnlab.batch import Batch
from attnlab.training.teacher_forcing.teacher_forcing import TeacherForcing

# Keeps the coins apart from what else is drawn from the same seed, such as the order of the batches.
STREAM = 2015


def toss(forcing: TeacherForcing, step: int, batch: Batch, seed: int) -> Tensor | None:
    """(B, T) bool: True feeds the reference. None, where that is everywhere, spares the model its guesses.

    One toss for each token is Bengio et al. 2015; tossing once for a sequence, they found "much worse", for an error
    then leads to the next. One toss for a whole batch is what many implementations do, by intent or not.
    """
    ratio = forcing.ratio_at(step)
    if ratio == 1:
        return None
    shape = batch.target_mask.shape  # (B, T)
    if forcing.coin == "batch":
        draws = np.random.default_rng([seed, STREAM, step]).random((1, 1))
    else:
        tosses = shape[1] if forcing.coin == "token" else 1
        draws = np.stack(
            [np.random.default_rng([seed, STREAM, step, row]).random(tosses) for row in batch.rows.tolist()]
        )
    feed_reference = torch.from_numpy(draws < ratio).expand(shape)
    if feed_reference.all():
        return None
    token = (batch.target_mask.cumsum(1) - 1).clamp(min=0)  # (B, T) counts a row's real tokens, wherever its pads are
    return feed_reference.to(token.device).gather(1, token)
