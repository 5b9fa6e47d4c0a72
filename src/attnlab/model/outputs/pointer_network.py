"""The pointer network: each token of the target is a token of the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.errors import ExperimentError
from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.step import StepOutput
from attnlab.model.outputs.likelihood import SummedLoss, at_least_single, positive_shares
from attnlab.model.outputs.output import Output, Reading, source_of_weights


@dataclass(frozen=True)
class PointerReading(Reading):
    """Where the next token is taken from."""

    weights: Tensor  # (..., S), of the attention, the mean over the heads
    source: Tensor  # (..., S) long, the source's tokens


class PointerNetwork(Output[PointerReading]):
    """P(y) = sum over i with x_i = y of alpha_i.

    Vinyals, Fortunato and Jaitly 2015, equation 3, which points at places; here equal tokens are
    one, and the source's `<eos>` ends the target. In the paper the query is the state after the
    last token, which is model/decoder=step_then_attend, and no context goes into the decoder, which
    is model.decoder.context=readout under a readout without weights. Source and target share one
    vocabulary. A token that the source lacks has the probability 0; its loss is that of the least
    normal number (87 nats in single precision), and has no gradient.
    """

    needs_attention: ClassVar[bool] = True
    copies: ClassVar[bool] = True
    only_copies: ClassVar[bool] = True

    def __init__(self, *, target_vocabulary_size: int) -> None:
        super().__init__()
        self.vocabulary_size = target_vocabulary_size

    @property
    def vocabulary(self) -> None:
        return None

    def read(self, readout: Tensor, step: StepOutput, memory: Memory) -> PointerReading:
        weights, source = source_of_weights(step, memory)
        if memory.intervention is not None:
            weights = positive_shares(weights)
        return PointerReading(readout, weights, source)

    def forward(self, reading: PointerReading) -> Tensor:
        """The log-probabilities (..., V)."""
        weights = at_least_single(reading.weights)
        probabilities = weights.new_zeros(*weights.shape[:-1], self.vocabulary_size)
        return _log(probabilities.scatter_add(-1, reading.source, weights))

    def summed_loss(
        self, reading: PointerReading, labels: Tensor, label_smoothing: float
    ) -> SummedLoss:
        """As `Output.summed_loss`; raises ExperimentError for label smoothing."""
        if label_smoothing:
            raise ExperimentError(refusal_of_smoothing(type(self)))
        is_label = reading.source == labels.unsqueeze(1)  # (N, S)
        nll = -_log((at_least_single(reading.weights) * is_label).sum(1)).sum()
        return SummedLoss(nll, nll)


def refusal_of_smoothing(output: type[Output]) -> str:
    """Why labels are not smoothed where only tokens of the source have a probability."""
    return (
        "training.label_smoothing spreads probability over the vocabulary, but the output "
        f"{output.__name__} gives 0 to each token that the source lacks; choose "
        "training.label_smoothing=0 or model/output=linear"
    )


def _log(probabilities: Tensor) -> Tensor:
    """The logarithm, of the least normal number in place of 0."""
    return probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()
