"""Input feeding: what a step receives from the step before, beside its token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from attnlab.model.outputs.output import Output, Reading
from attnlab.model.readouts import Readout


class InputFeeding(nn.Module, ABC):
    """Makes the vector that is joined to the next step's input; before the first step it is zero.

    A subclass sets `size` in its constructor and defines `forward`. Its constructor takes its
    settings, and whichever of the run-time arguments it needs: `readout` (the Readout itself),
    `embedding_size` E and `vocabulary_size` V of the target.

    size: width F of that vector.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("readout", "embedding_size", "vocabulary_size")

    size: int

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, reading: Reading, output: Output, embedding: nn.Embedding) -> Tensor:
        """Return what the next step is fed, (B, F).

        Args:
            reading: of this step; its `readout` is (B, R).
            output: makes logits (B, V) of the reading.
            embedding: the target embedding.
        """


class AttentionalHiddenFeeding(InputFeeding):
    """x_t = [e(y_{t-1}); attentional_hidden_{t-1}] (Luong et al. 2015, section 3.3)."""

    def __init__(self, *, readout: Readout) -> None:
        super().__init__()
        if not readout.makes_attentional_hidden:
            raise ValueError(
                "feeding the attentional hidden state needs a readout that makes one; choose "
                "model/readout=attentional or model/input_feeding=none"
            )
        self.size = readout.size

    def forward(self, reading: Reading, output: Output, embedding: nn.Embedding) -> Tensor:
        return reading.readout


class ExpectedEmbeddingFeeding(InputFeeding):
    """x_t = [e(y_{t-1}); sum_y p_{t-1}(y) e(y)], with the last step's expected embedding."""

    def __init__(self, *, embedding_size: int) -> None:
        super().__init__()
        self.size = embedding_size

    def forward(self, reading: Reading, output: Output, embedding: nn.Embedding) -> Tensor:
        return output(reading).softmax(-1) @ embedding.weight


class SoftmaxOutputFeeding(InputFeeding):
    """x_t = [e(y_{t-1}); p_{t-1}]: the last step's softmax output, a number for each token."""

    def __init__(self, *, vocabulary_size: int) -> None:
        super().__init__()
        self.size = vocabulary_size

    def forward(self, reading: Reading, output: Output, embedding: nn.Embedding) -> Tensor:
        return output(reading).softmax(-1)
