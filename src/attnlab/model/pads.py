"""Pads: reorder the tokens of a batch, and run recurrent layers that never read a pad."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlab.model.recurrence import ONE_LAYER

# The share of real tokens below which packed sequences are faster than oneDNN's recurrence.
LEAST_REAL = 0.5 if torch.backends.cpu.get_cpu_capability().startswith("AVX512") else 0.8
SHUT = -10_000.0  # what the sigmoid of a gate makes exactly 0, in bfloat16 too


def pads_last(mask: Tensor) -> Tensor:
    """The order of positions, (B, S), that puts real tokens first and keeps their own order."""
    return (~mask).long().argsort(dim=1, stable=True)


def reorder(x: Tensor, order: Tensor) -> Tensor:
    """x (B, S, ...) with the positions of each row taken in `order` (B, S)."""
    # Whole rows: cheaper than a gather
    rows = order + x.shape[1] * torch.arange(len(x), device=x.device).unsqueeze(1)
    return x.flatten(0, 1).index_select(0, rows.flatten()).view_as(x)


def flip_real(mask: Tensor) -> Tensor:
    """The order of positions, (B, S), that turns the real tokens of each row around; they must come
    first in it.
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
    if (
        isinstance(recurrence, nn.LSTM)
        and x.device.type == "cpu"
        and lengths.sum() >= LEAST_REAL * x[..., 0].numel()
    ):
        return behind_shut_gates(recurrence, x, lengths)
    return packed(recurrence, x, lengths)


def packed(recurrence: nn.RNNBase, x: Tensor, lengths: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """`read_real` by torch's packed sequences."""
    sequence = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
    outputs, final = recurrence(sequence)
    return pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0], states_of(
        final
    )


def behind_shut_gates(
    lstm: nn.LSTM, x: Tensor, lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """`read_real` of an LSTM, by oneDNN's recurrence, which is faster than torch's and takes no
    packed sequences.

    Pads are read first, behind input gates that another input shuts: i = sigmoid(-10000) = 0, so c
    = f 0 + 0 g = 0 and h = o tanh(0) = 0 until the first real token, and no gradient comes from a
    pad.
    """
    places, lengths = torch.arange(x.shape[1], device=x.device), lengths.unsqueeze(1)
    pads = (places < x.shape[1] - lengths).unsqueeze(2)
    x = torch.cat([reorder(x, (places + lengths) % x.shape[1]), pads.to(x.dtype)], dim=2)
    shut = x.new_zeros(4 * lstm.hidden_size, 1)
    shut[: lstm.hidden_size] = SHUT
    into_gates, *others = lstm.all_weights[0]
    weights = [torch.cat([into_gates, shut], dim=1), *others]
    first = x.new_zeros(1, len(x), lstm.hidden_size)
    outputs, hidden, cell = torch.lstm(x, (first, first), weights, *ONE_LAYER)
    return reorder(outputs, (places - lengths) % x.shape[1]), states_of((hidden, cell))


def states_of(final: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """torch's final state of one layer, (1, B, H) or a pair of such -> (B, H) each."""
    return tuple(state.squeeze(0) for state in (final if isinstance(final, tuple) else (final,)))
