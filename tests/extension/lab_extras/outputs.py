"""An output: from the readout to the logits of the vocabulary."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from attnlab.model.outputs.output import Output, Reading


class CappedOutput(Output[Reading]):
    """z = C tanh((W r + b) / C): no logit is larger than the cap (Gemma Team 2024, section 2).

    Args:
        cap: C.
    """

    def __init__(
        self, cap: PositiveFloat, *, readout_size: int, target_vocabulary_size: int
    ) -> None:
        super().__init__()
        self.cap = cap
        self.layer = nn.Linear(readout_size, target_vocabulary_size)

    @property
    def vocabulary(self) -> nn.Linear:
        return self.layer

    def forward(self, reading: Reading) -> Tensor:
        return self.cap * torch.tanh(self.layer(reading.readout) / self.cap)
