"""Hard attention that never goes back (Wu and Cotterell 2019).

Axes: S source; leading axes as in `attnlab.model.outputs.output`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.step import StepOutput
from attnlab.model.outputs.alignment_chain import NEVER, AlignmentChain, is_never
from attnlab.model.outputs.hard_attention import AlignedReading
from attnlab.model.readouts import Readout


@dataclass(frozen=True, kw_only=True)
class OnwardReading(AlignedReading):
    """What each step knows of the weights from each source token on."""

    log_rest: Tensor  # (..., S), log sum_{k >= j} alpha_t(k)


class HardMonotonicAttention(AlignmentChain[OnwardReading]):
    """p(a_t = i | a_{t-1} = j) = alpha_t(i) / sum_{k >= j} alpha_t(k), for i >= j.

    The zeroth-order model of Wu and Cotterell 2019 with its monotonic constraint: the weights of
    the attention, without those of the tokens before the last alignment. All of a step's
    transitions share these weights, so that a step takes O(S) time and memory.
    """

    def read_with(
        self, layer: Readout, readout: Tensor, step: StepOutput, memory: Memory
    ) -> OnwardReading:
        reading = self._aligned(layer, readout, step, memory)
        log_rest = _logcumsumexp_from_the_end(reading.log_weights.clamp(min=NEVER))
        return self._started(OnwardReading(**vars(reading), log_rest=log_rest), memory)

    def advance(self, reading: OnwardReading, log_before: Tensor) -> Tensor:
        log_weights = reading.log_weights.clamp(min=NEVER)
        stays = is_never(reading.log_rest)
        share = (log_before - reading.log_rest).masked_fill(stays, NEVER)
        moved = log_weights + share.logcumsumexp(-1)
        stayed = log_before.masked_fill(~stays, NEVER)
        return torch.logaddexp(moved, stayed)

    def look_back(self, reading: OnwardReading, log_after: Tensor) -> Tensor:
        log_weights = reading.log_weights.clamp(min=NEVER)
        moved = _logcumsumexp_from_the_end(log_weights + log_after) - reading.log_rest
        return torch.where(is_never(reading.log_rest), log_after, moved)


def _logcumsumexp_from_the_end(x: Tensor) -> Tensor:
    return x.flip(-1).logcumsumexp(-1).flip(-1)
