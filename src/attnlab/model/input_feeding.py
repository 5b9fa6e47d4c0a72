"""Input feeding: what a step receives from the step before, beside its token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from attnlab.model.readouts import AttentionalReadout, Readout


class InputFeeding(nn.Module, ABC):
    """Makes the vector that is joined to the next step's input; before the first step it is zero.

    size: width F of that vector.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("readout", "embedding_size", "vocabulary_size")

    size: int

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, readout: Tensor, output: nn.Module, embedding: nn.Embedding) -> Tensor:
        """readout (B, R) of a step, the output layer, the target embedding -> what the next step is
        fed, (B, F).
        """


class AttentionalHiddenFeeding(InputFeeding):
    """x_t = [e(y_{t-1}); attentional_hidden_{t-1}] (Luong et al. 2015, section 3.3)."""

    def __init__(self, *, readout: Readout, embedding_size: int, vocabulary_size: int) -> None:
        super().__init__()
        if not isinstance(readout, AttentionalReadout):
            raise ValueError(
                "feeding the attentional hidden state needs a readout that makes one; choose "
                "model/readout=attentional or model/input_feeding=none"
            )
        self.size = readout.size

    def forward(self, readout: Tensor, output: nn.Module, embedding: nn.Embedding) -> Tensor:
        return readout


class ExpectedEmbeddingFeeding(InputFeeding):
    """x_t = [e(y_{t-1}); sum_y p_{t-1}(y) e(y)]: the softmax output of the last step as its
    expected embedding.
    """

    def __init__(self, *, readout: Readout, embedding_size: int, vocabulary_size: int) -> None:
        super().__init__()
        self.size = embedding_size

    def forward(self, readout: Tensor, output: nn.Module, embedding: nn.Embedding) -> Tensor:
        return output(readout).softmax(-1) @ embedding.weight


class SoftmaxOutputFeeding(InputFeeding):
    """x_t = [e(y_{t-1}); p_{t-1}]: the softmax output of the last step as it is, a number for each
    token.
    """

    def __init__(self, *, readout: Readout, embedding_size: int, vocabulary_size: int) -> None:
        super().__init__()
        self.size = vocabulary_size

    def forward(self, readout: Tensor, output: nn.Module, embedding: nn.Embedding) -> Tensor:
        return output(readout).softmax(-1)
