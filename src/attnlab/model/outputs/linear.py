"""The plain output: a linear layer, and a softmax over the vocabulary."""

from __future__ import annotations

from torch import Tensor, nn

from attnlab.model.outputs.output import Output, Reading


class LinearOutput(nn.Linear, Output[Reading]):
    """P(y) = softmax(W r + b), with the readout r."""

    def __init__(self, *, readout_size: int, target_vocabulary_size: int) -> None:
        super().__init__(readout_size, target_vocabulary_size)

    @property
    def vocabulary(self) -> nn.Linear:
        return self

    def forward(self, reading: Reading) -> Tensor:  # type: ignore[override]
        return super().forward(reading.readout)
