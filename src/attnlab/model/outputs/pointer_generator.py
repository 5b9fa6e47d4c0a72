"""The pointer-generator: each token is written from the vocabulary, or copied from the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.step import StepOutput
from attnlab.model.outputs.likelihood import SummedLoss, at_least_single, smoothed_nll
from attnlab.model.outputs.output import Output, Reading, source_of_weights


@dataclass(frozen=True)
class CopyReading(Reading):
    """The readout, the gate between writing and copying, and where to copy from."""

    gate: Tensor  # (...,), p_gen is its sigmoid
    weights: Tensor  # (..., S), of the attention, the mean over the heads
    source: Tensor  # (..., S) long, the source's tokens


class PointerGenerator(Output[CopyReading]):
    """P(y) = p_gen softmax(W r + b)(y) + (1 - p_gen) sum over i with x_i = y of alpha_i.

    See, Liu and Manning 2017, equations 8 and 9: p_gen = sigmoid(w [c_t; s_t; e(y_{t-1})] + b),
    there with the cell's whole state and its input in place of s_t and e(y_{t-1}). Where no context
    goes into the readout, p_gen reads none. Source and target share one vocabulary, with numbered
    unknown words (`data.tokenizer.numbered_unknown`) also for words that it lacks.
    """

    needs_attention: ClassVar[bool] = True
    copies: ClassVar[bool] = True

    def __init__(
        self,
        *,
        readout_size: int,
        hidden_size: int,
        context_size: int,
        embedding_size: int,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__()
        self.generator = nn.Linear(readout_size, target_vocabulary_size)
        self.gate = nn.Linear(context_size + hidden_size + embedding_size, 1)

    @property
    def vocabulary(self) -> nn.Linear:
        return self.generator

    def read(self, readout: Tensor, step: StepOutput, memory: Memory) -> CopyReading:
        # 1. The gate reads what the readout reads.
        known = [step.hidden, step.token]
        if step.context is not None:
            known = [step.context, *known]
        gate = self.gate(torch.cat(known, dim=-1)).squeeze(-1)  # (B,) or (B, T)

        # 2. Copying goes by the attention weights.
        weights, source = source_of_weights(step, memory)
        return CopyReading(readout, gate, weights, source)

    def forward(self, reading: CopyReading) -> Tensor:
        """The log-probabilities (..., V)."""
        written = at_least_single(self.generator(reading.readout)).log_softmax(-1)
        copied = torch.zeros_like(written)
        copied = copied.scatter_add(-1, reading.source, reading.weights.to(copied.dtype))
        gate = reading.gate.unsqueeze(-1)
        return _either(gate, written, copied)

    def summed_loss(
        self, reading: CopyReading, labels: Tensor, label_smoothing: float
    ) -> SummedLoss:
        """As `Output.summed_loss`.

        Without smoothing only the labels' probabilities are mixed, and not the whole vocabulary's.
        """
        if label_smoothing:
            return smoothed_nll(self(reading), labels, label_smoothing)
        labels = labels.unsqueeze(1)  # (N, 1)
        logits = at_least_single(self.generator(reading.readout))
        written = logits.log_softmax(-1).gather(1, labels).squeeze(1)
        is_label = reading.source == labels  # (N, S)
        copied = (reading.weights.to(written.dtype) * is_label).sum(1)
        nll = -_either(reading.gate, written, copied).sum()
        return SummedLoss(nll, nll)


def _either(gate: Tensor, written: Tensor, copied: Tensor) -> Tensor:
    """log(p_gen exp(written) + (1 - p_gen) copied), with p_gen = sigmoid(gate).

    Args:
        written: log-probabilities of writing.
        copied: probabilities of copying, which are often 0.
    """
    gate = at_least_single(gate)
    # The least normal number in place of 0 keeps the gradient finite.
    log_copied = copied.clamp(min=torch.finfo(copied.dtype).tiny).log()
    return torch.logaddexp(logsigmoid(gate) + written, logsigmoid(-gate) + log_copied)
