"""Hard attention, summed over all alignments (Wu, Shapiro and Cotterell 2018).

Axes: S source, V vocabulary, P projected values; leading axes as in `attnlab.model.outputs.output`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import ClassVar, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.checkpoint import checkpoint

from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.step import StepOutput
from attnlab.model.outputs.likelihood import (
    SummedLoss,
    at_least_single,
    positive_shares,
    smoothed_nll,
)
from attnlab.model.outputs.output import Output, Reading
from attnlab.model.readouts import Readout

# Numbers that one intermediate result may have: steps are processed so many at a time.
AT_ONCE = 2**22
# Above so many in all, a training computes them again in its backward pass, and stores none.
STORED = 2**24


@dataclass(frozen=True)
class AlignedReading(Reading):
    """What each step knows of itself, and of each source token that it may be aligned with.

    row says which row of `projected_values` belongs to a step: these two and `layer` have no
    leading axes of their own, and all steps share them.
    """

    hidden: Tensor  # (..., H)
    token: Tensor  # (..., E)
    log_weights: Tensor  # (..., S), of the attention; -inf where a weight is 0
    log_prior: Tensor  # (..., S), log p(a_t = i | y_<t, x)
    row: Tensor  # (...,) long
    projected_values: Tensor  # (B, S, P)
    layer: Readout
    label: Tensor | None = None  # (...,) long, of a known target
    label_emissions: Tensor | None = None  # (..., S), log p(label | a_t = i)

    def columns(self) -> dict[str, Tensor]:
        shared = ("projected_values", "layer")
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: x for name, x in own.items() if x is not None and name not in shared}


AlignedT = TypeVar("AlignedT", bound=AlignedReading)


class HardAttention(Output[AlignedT]):
    """P(y_t) = sum_i alpha_t(i) softmax(W r(s_t, h_i, y_{t-1}) + b)(y_t).

    Each token of the target comes from one token of the source, a_t, and a_t is summed over: Wu,
    Shapiro and Cotterell 2018, equations 5 to 7. alpha_t, the weights of the attention, are the
    distribution of a_t; given the state it depends on no other alignment, so that the sum over all
    S^T alignments is a product of T sums. r is the readout with the value h_i in place of the
    context c_t. In the paper its decoder never reads c_t; that is model/decoder=step_then_attend
    with context=readout and no input feeding. Where a decoder reads it, the sum is exact as well.

    Attention weights of a known target are the posterior p(a_t | y, x).
    """

    needs_attention: ClassVar[bool] = True
    reads_each_value: ClassVar[bool] = True
    has_posterior: ClassVar[bool] = True

    def __init__(self, *, readout_size: int, target_vocabulary_size: int) -> None:
        super().__init__()
        self.generator = nn.Linear(readout_size, target_vocabulary_size)

    @property
    def vocabulary(self) -> nn.Linear:
        return self.generator

    def read_with(
        self, layer: Readout, readout: Tensor, step: StepOutput, memory: Memory
    ) -> AlignedT:
        return self._aligned(layer, readout, step, memory)  # type: ignore[return-value]

    def _aligned(
        self, layer: Readout, readout: Tensor, step: StepOutput, memory: Memory
    ) -> AlignedReading:
        """What each step and each source token know, with the weights as distribution of a_t."""
        assert step.attention_weights is not None
        assert memory.projected_values is not None
        # 1. The log of the weights, (B, S) or (B, T, S). Where they are 0 it has no gradient.
        weights = at_least_single(step.attention_weights[:, 0])
        if memory.intervention is not None:
            weights = positive_shares(weights)
        tiny = torch.finfo(weights.dtype).tiny
        log_weights = weights.clamp(min=tiny).log().masked_fill(weights == 0, -torch.inf)

        # 2. Several rows of one step may share a row of the memory.
        memory_rows = torch.arange(len(memory.projected_values), device=weights.device)
        row = memory_rows.repeat_interleave(len(weights) // len(memory_rows))
        if weights.dim() == 3:
            row = row.unsqueeze(1).expand(weights.shape[:2])
        return AlignedReading(
            readout=readout,
            hidden=step.hidden,
            token=step.token,
            log_weights=log_weights,
            log_prior=log_weights,
            row=row,
            projected_values=memory.projected_values,
            layer=layer,
        )

    def of_target(self, reading: AlignedT, labels: Tensor, mask: Tensor) -> AlignedT:
        emissions = self.emissions_of(reading, labels)
        return replace(reading, label=labels, label_emissions=emissions)

    def posterior(self, reading: AlignedT, mask: Tensor) -> Tensor | None:
        assert reading.label_emissions is not None
        return (reading.log_prior + reading.label_emissions).softmax(-1)

    def forward(self, reading: AlignedT) -> Tensor:
        """The log-probabilities (..., V)."""
        return self._by_parts(reading, self._marginal, reading.log_prior)

    def emissions_of(self, reading: AlignedT, labels: Tensor) -> Tensor:
        """log p(label | a_t = i) of labels (...): (..., S)."""
        return self._by_parts(reading, _of_labels, labels)

    def summed_loss(self, reading: AlignedT, labels: Tensor, label_smoothing: float) -> SummedLoss:
        """As `Output.summed_loss`.

        Without smoothing only the labels' probabilities are summed over the source, and those of a
        known target are known. Labels of another target than the reading's have a loss of NaN.
        """
        if label_smoothing:
            return smoothed_nll(self(reading), labels, label_smoothing)
        emissions = reading.label_emissions
        if emissions is None:
            emissions = self.emissions_of(reading, labels)
        nll = -(reading.log_prior + emissions).logsumexp(-1)
        if reading.label is not None:
            nll = nll.masked_fill(labels != reading.label, torch.nan)
        return SummedLoss(nll.sum(), nll.sum())

    def _marginal(self, emissions: Tensor, log_prior: Tensor) -> Tensor:
        return (emissions + log_prior.unsqueeze(-1)).logsumexp(-2)

    def _by_parts(
        self,
        reading: AlignedT,
        reduce: Callable[[Tensor, Tensor], Tensor],
        other: Tensor,
    ) -> Tensor:
        """`reduce` of log p(v | a_t = i), (n, S, V), for n steps at a time: (..., X).

        All of them at once are the largest tensor of the model, S times as large as the logits of a
        plain output. It is never built: each part is reduced before the next one.

        Args:
            reduce: what is left of one part, (n, S, V) and the rows of `other` -> (n, X).
            other: a tensor with the leading axes.
        """
        leading = reading.row.shape
        row, hidden, token = reading.row.flatten(), reading.hidden, reading.token
        hidden, token = hidden.flatten(0, -2), token.flatten(0, -2)
        other = other.flatten(0, len(leading) - 1)

        def reduced(
            its_row: Tensor, its_hidden: Tensor, its_token: Tensor, its_other: Tensor
        ) -> Tensor:
            values = reading.projected_values[its_row]  # (n, S, P)
            readouts = reading.layer.at_each(its_hidden, values, its_token)  # (n, S, R)
            logits = at_least_single(linear(readouts, self.generator.weight, self.generator.bias))
            return reduce(logits.log_softmax(-1), its_other)

        vocabulary_size = self.generator.out_features
        widest = max(vocabulary_size, self.generator.in_features)
        numbers_of_a_step = reading.projected_values.shape[1] * widest
        is_large = len(row) * numbers_of_a_step > STORED
        size = max(AT_ONCE // numbers_of_a_step, 1)
        parts = []
        for part in zip(*(x.split(size) for x in (row, hidden, token, other)), strict=True):
            if is_large and torch.is_grad_enabled():
                parts.append(checkpoint(reduced, *part, use_reentrant=False))
            else:
                parts.append(reduced(*part))
        return torch.cat(parts).unflatten(0, leading)


def _of_labels(emissions: Tensor, labels: Tensor) -> Tensor:
    """Of emissions (n, S, V) those of labels (n,): (n, S)."""
    at_labels = labels.view(-1, 1, 1).expand(-1, emissions.shape[1], 1)
    return emissions.gather(2, at_labels).squeeze(2)
