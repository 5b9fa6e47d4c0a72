"""Hard attention that never goes back (Wu and Cotterell 2019).

Axes: S source; leading axes as in `attnlab.model.outputs.output`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.model.outputs.alignment_chain import NEVER, AlignmentChain, is_never
from attnlab.model.outputs.hard_attention import AlignedReading


class HardMonotonicAttention(AlignmentChain[AlignedReading]):
    """p(a_t = i | a_{t-1} = j) = alpha_t(i) / sum_{k >= j} alpha_t(k), for i >= j.

    The zeroth-order model of Wu and Cotterell 2019 with its monotonic constraint: the weights of
    the attention, without those of the tokens before the last alignment. All of a step's
    transitions share these weights, so that a step takes O(S) time and memory.
    """

    def advance(self, reading: AlignedReading, log_before: Tensor) -> Tensor:
        log_weights, log_rest = _weights_and_rest(reading)
        stays = is_never(log_rest)
        share = (log_before - log_rest).masked_fill(stays, NEVER)
        moved = log_weights + share.logcumsumexp(-1)
        stayed = log_before.masked_fill(~stays, NEVER)
        return torch.logaddexp(moved, stayed)

    def look_back(self, reading: AlignedReading, log_after: Tensor) -> Tensor:
        log_weights, log_rest = _weights_and_rest(reading)
        moved = _logcumsumexp_from_the_end(log_weights + log_after) - log_rest
        return torch.where(is_never(log_rest), log_after, moved)


def _weights_and_rest(reading: AlignedReading) -> tuple[Tensor, Tensor]:
    """log alpha_t(j) and log sum_{k >= j} alpha_t(k), both (..., S)."""
    log_weights = reading.log_weights.clamp(min=NEVER)
    return log_weights, _logcumsumexp_from_the_end(log_weights)


def _logcumsumexp_from_the_end(x: Tensor) -> Tensor:
    return x.flip(-1).logcumsumexp(-1).flip(-1)
