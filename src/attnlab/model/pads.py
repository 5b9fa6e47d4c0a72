"""Pads: reorder the tokens of a batch, and run recurrent layers that never read a pad."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def pads_last(mask: Tensor) -> Tensor:
    """The order of positions, (B, S), that puts real tokens first and keeps their own order."""
    return (~mask).long().argsort(dim=1, stable=True)


def reorder(x: Tensor, order: Tensor) -> Tensor:
    """x (B, S, ...) with the positions of each row taken in `order` (B, S)."""
    index = order.view(*order.shape, *[1] * (x.dim() - 2)).expand(-1, -1, *x.shape[2:])
    return x.gather(1, index)


def inverse(order: Tensor) -> Tensor:
    """The order that undoes `order`."""
    return order.argsort(dim=1)


def flip_real(mask: Tensor) -> Tensor:
    """The order of positions, (B, S), that turns the real tokens of each row around; they must come first in it."""
    places = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)


Run = Callable[[nn.RNNBase, Tensor, Tensor], tuple[Tensor, tuple[Tensor, ...]]]
"""A one-layer recurrence, x (B, S, E) and lengths (B,) -> outputs (B, S, H), final state: hidden (B, H), and the cell's
(B, H) of an LSTM."""


def packed(recurrence: nn.RNNBase, x: Tensor, lengths: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """By torch's packed sequences."""
    sequence = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
    outputs, final = recurrence(sequence)
    return pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0], states_of(final)


def flipped(recurrence: nn.RNNBase, x: Tensor, lengths: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """By dense runs over rows that stand with their real tokens first (a backward direction has them flipped).

    Between two neighbouring lengths all rows that are not yet at their end go on together, each with its own state;
    a batch of one length is one run.
    """
    alive = torch.arange(len(x), device=x.device)  # the rows that are still being read
    segments: list[Tensor] = []
    ended: list[Tensor] = []
    finals: list[tuple[Tensor, ...]] = []
    state, start = None, 0
    for end in lengths.unique().tolist():  # ascending
        found, state = recurrence(x[alive, start:end], state)
        segments.append(found.new_zeros(len(x), end - start, found.shape[2]).index_copy(0, alive, found))
        goes_on = lengths[alive] > end
        ended.append(alive[~goes_on])
        finals.append(tuple(part[~goes_on] for part in states_of(state)))
        going_on = [part[goes_on].unsqueeze(0) for part in states_of(state)]
        alive, state, start = alive[goes_on], going_on[0] if len(going_on) == 1 else tuple(going_on), end
    outputs = pad(torch.cat(segments, dim=1), (0, 0, 0, x.shape[1] - start))
    order = torch.cat(ended).argsort()
    return outputs, tuple(torch.cat(parts)[order] for parts in zip(*finals, strict=True))


def states_of(final: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """torch's final state of one layer, (1, B, H) or a pair of such -> (B, H) each."""
    return tuple(state.squeeze(0) for state in (final if isinstance(final, tuple) else (final,)))
