"""Pads: reorder the tokens of a batch, and run recurrent layers that never read a pad."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlab.batch import Padding


def tokens_read(mask: Tensor, padding: Padding) -> Tensor:
    """Where a source (B, S) is read: at its real tokens, or everywhere where pads are read."""
    return mask if padding.recurrence == "skip" else torch.ones_like(mask)


def pads_last(mask: Tensor) -> Tensor:
    """The order of positions, (B, S), that puts real tokens first and keeps their own order."""
    return (~mask).long().argsort(dim=1, stable=True)


def reorder(x: Tensor, order: Tensor) -> Tensor:
    """x (B, S, ...) with the positions of each row taken in `order` (B, S)."""
    # Whole rows: cheaper than a gather
    rows = order + x.shape[1] * torch.arange(len(x), device=x.device).unsqueeze(1)
    return x.flatten(0, 1).index_select(0, rows.flatten()).view_as(x)


def flip_real(mask: Tensor) -> Tensor:
    """The order of positions, (B, S), that turns the real tokens of each row around.

    They must come first in it.
    """
    places = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)


def read_real(
    recurrence: nn.RNNBase, x: Tensor, lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """A one-layer recurrence over the real tokens, which stand first; no state ever sees a pad.

    x (B, S, E) and lengths (B,) -> outputs (B, S, H), zero at pads; final state: hidden (B, H), and
    the cell's (B, H) of an LSTM.
    """
    sequence = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
    outputs, final = recurrence(sequence)
    return pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0], states_of(
        final
    )


def states_of(final: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """torch's final state of one layer, (1, B, H) or a pair of such -> (B, H) each."""
    return tuple(state.squeeze(0) for state in (final if isinstance(final, tuple) else (final,)))
