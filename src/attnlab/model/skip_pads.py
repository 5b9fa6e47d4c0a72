"""Run a recurrent layer over sentences of unequal lengths so that no state ever sees a pad: two ways, one result.

Real tokens come first in each row. Outputs at pads are zero, and the final state is that after the last real token.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

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
