"""Feed what the last step believed, not only the token that was chosen of it."""

from __future__ import annotations

from torch import Tensor, nn

from attnlab.model.input_feeding.input_feeding import InputFeeding
from attnlab.model.readout.readout import Readout


class ExpectedEmbeddingFeeding(InputFeeding):
    """x_t = [e(y_{t-1}); sum_y p_{t-1}(y) e(y)]: the softmax output of the last step as its expected embedding."""

    def __init__(self, *, readout: Readout, embedding_size: int) -> None:
        super().__init__()
        self.size = embedding_size

    def forward(self, readout: Tensor, output: nn.Module, embedding: nn.Embedding) -> Tensor:
        return output(readout).softmax(-1) @ embedding.weight
