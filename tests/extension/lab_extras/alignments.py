"""An output whose alignment depends on the one before."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from attnlab.model.outputs.alignment_chain import NEVER, AlignmentChain
from attnlab.model.outputs.hard_attention import AlignedReading


class StayingAttention(AlignmentChain[AlignedReading]):
    """Stay at the last source token with the probability p, else choose one by the weights.

    Args:
        stay: p.
    """

    def __init__(
        self,
        stay: Annotated[float, Field(gt=0, lt=1)],
        *,
        readout_size: int,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__(readout_size=readout_size, target_vocabulary_size=target_vocabulary_size)
        self.log_stay = math.log(stay)
        self.log_leave = math.log(1 - stay)

    def advance(self, reading: AlignedReading, log_before: Tensor) -> Tensor:
        log_weights = reading.log_weights.clamp(min=NEVER)
        return torch.logaddexp(self.log_stay + log_before, self.log_leave + log_weights)

    def look_back(self, reading: AlignedReading, log_after: Tensor) -> Tensor:
        log_weights = reading.log_weights.clamp(min=NEVER)
        anywhere = (log_weights + log_after).logsumexp(-1, keepdim=True)
        return torch.logaddexp(self.log_stay + log_after, self.log_leave + anywhere)
