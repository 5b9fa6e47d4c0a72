"""Hard attention whose alignment depends on the one before (Wu and Cotterell 2019).

Axes: S source, T target; leading axes as in `attnlab.model.outputs.output`. Probabilities are
logarithms. That of what cannot be is `NEVER`, and not -inf: differences of -inf have no gradient.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.batch import BOS
from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.step import StepOutput
from attnlab.model.histories.starts import at_first_token
from attnlab.model.outputs.hard_attention import AlignedT, HardAttention
from attnlab.model.outputs.output import unstacked
from attnlab.model.readouts import Readout

NEVER = -1e30


def is_never(log_probabilities: Tensor) -> Tensor:
    """Where a product has a factor that cannot be."""
    return log_probabilities < NEVER / 2


class AlignmentChain(HardAttention[AlignedT]):
    """P(y | x) = sum over all alignments of prod_t p(a_t | a_{t-1}) p(y_t | a_t).

    The forward algorithm sums over all S^T alignments exactly: alpha_t(i) = p(a_t = i | y_<t, x)
    follows from alpha_{t-1} and y_{t-1} (Wu and Cotterell 2019). Before the first step an alignment
    stands at the first source token. Where no token has a weight above 0 that the alignment may go
    to, it stays where it is, so that probabilities always sum to 1.

    A subclass defines p(a_t | a_{t-1}) by `advance` and `look_back`.
    """

    follows_alignment: ClassVar[bool] = True

    @abstractmethod
    def advance(self, reading: AlignedT, log_before: Tensor) -> Tensor:
        """log sum_j p(a_t = i | a_{t-1} = j) p(j): log p(j) (..., S) -> (..., S)."""

    @abstractmethod
    def look_back(self, reading: AlignedT, log_after: Tensor) -> Tensor:
        """log sum_i p(a_t = i | a_{t-1} = j) q(i): log q(i) (..., S) -> (..., S)."""

    def read_with(
        self, layer: Readout, readout: Tensor, step: StepOutput, memory: Memory
    ) -> AlignedT:
        """As `Output.read_with`; alpha_t is that of a first step, until `follow` replaces it."""
        return self._started(super().read_with(layer, readout, step, memory), memory)

    def follow(self, reading: AlignedT, before: AlignedT | None, tokens: Tensor) -> AlignedT:
        if before is None:
            return reading
        emissions = self.emissions_of(before, tokens)
        log_prior = self.advance(reading, _filtered(before.log_prior, emissions))
        # Where the step before was a pad, this one is the first.
        is_first = (tokens == BOS).unsqueeze(-1)
        return replace(reading, log_prior=torch.where(is_first, reading.log_prior, log_prior))

    def of_target(self, reading: AlignedT, labels: Tensor, mask: Tensor) -> AlignedT:
        reading = super().of_target(reading, labels, mask)
        emissions = reading.label_emissions
        assert emissions is not None
        priors = []
        filtered = torch.zeros_like(emissions[:, 0])
        has_begun = torch.zeros_like(mask[:, 0])
        for t, step in enumerate(unstacked(reading)):
            is_real = mask[:, t].unsqueeze(-1)
            log_prior = self.advance(step, filtered)
            log_prior = torch.where(has_begun.unsqueeze(-1), log_prior, step.log_prior)
            filtered = torch.where(is_real, _filtered(log_prior, emissions[:, t]), filtered)
            has_begun = has_begun | mask[:, t]
            priors.append(log_prior)
        return replace(reading, log_prior=torch.stack(priors, dim=1))

    def alignment(self, reading: AlignedT) -> Tensor | None:
        return reading.log_prior.exp()

    def posterior(self, reading: AlignedT, mask: Tensor) -> Tensor | None:
        """The forward-backward algorithm: (B, T, S)."""
        emissions = reading.label_emissions
        assert emissions is not None
        behind = []
        log_behind = torch.zeros_like(emissions[:, 0])  # of the tokens after t, given a_t
        steps = unstacked(reading)
        for t in reversed(range(mask.shape[1])):
            behind.append(log_behind)
            of_rest = log_behind + emissions[:, t]
            from_here = self.look_back(steps[t], of_rest)
            # The greatest becomes 0, for sums of many steps are less exact.
            from_here = from_here - from_here.detach().amax(-1, keepdim=True)
            log_behind = torch.where(mask[:, t].unsqueeze(-1), from_here, log_behind)
        log_behind = torch.stack(behind[::-1], dim=1)
        return (reading.log_prior + emissions + log_behind).softmax(-1)

    def _started(self, reading: AlignedT, memory: Memory) -> AlignedT:
        """The reading with alpha_t as of a first step."""
        is_first = at_first_token(memory) > 0
        log_start = torch.zeros_like(is_first, dtype=reading.log_weights.dtype)
        log_start = log_start.masked_fill(~is_first, NEVER)[reading.row]
        return replace(reading, log_prior=self.advance(reading, log_start))


def _filtered(log_prior: Tensor, emissions: Tensor) -> Tensor:
    """log p(a_t | y_<=t, x), of log p(a_t | y_<t, x) and log p(y_t | a_t): (..., S)."""
    return (log_prior + emissions).log_softmax(-1).clamp(min=NEVER)
