"""Recurrences over padded batches in place of packed sequences.

On a CPU, packed sequences are slower than oneDNN's recurrence. On a GPU they wait for the lengths,
and copy once for each length.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.pads import reorder, states_of
from attnlab.model.recurrence import ONE_LAYER

# The share of real tokens below which packed sequences are faster than oneDNN's recurrence.
LEAST_REAL = 0.5 if torch.backends.cpu.get_cpu_capability().startswith("AVX512") else 0.8
TILE = 32  # numbers of bfloat16 in a row of a tile
CLOSED_GATE = -10_000.0  # what the sigmoid of a gate makes exactly 0, in bfloat16 too


class FastEncoder(RecurrentEncoder):
    """Layers that read their pads: on a GPU all of them, on a CPU an LSTM where pads are few."""

    def read_real(
        self, layer: nn.RNNBase, x: Tensor, lengths: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        if x.is_cuda:
            read = lstm_with_gated_pads if isinstance(layer, nn.LSTM) else read_pads_last
            return read(layer, x, lengths)
        if not isinstance(layer, nn.LSTM) or not x.is_cpu:
            return super().read_real(layer, x, lengths)
        places = x.shape[0] * x.shape[1]
        if lengths.sum() < LEAST_REAL * places:
            return super().read_real(layer, x, lengths)
        return lstm_with_gated_pads(layer, x, lengths)


def _further_inputs(x: Tensor) -> int:
    """How many numbers stand beside each input: one, or in half precision up to whole tiles.

    Of an odd width in bfloat16 oneDNN makes no tiles (AMX), and takes four times as long.
    """
    if x.is_cpu and torch.is_autocast_enabled("cpu"):
        return TILE - x.shape[2] % TILE
    return 1


def read_pads_last(
    recurrence: nn.RNNBase, x: Tensor, lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """`RecurrentEncoder.read_real` of a GRU or a tanh RNN, which reads the pads after the rest.

    Its state is its output, so that the final one is that at the last real token.
    """
    outputs, _ = recurrence(x)
    places = torch.arange(x.shape[1], device=x.device)
    is_real = (places < lengths.unsqueeze(1)).unsqueeze(2)  # (B, S, 1)
    last = (lengths - 1).view(-1, 1, 1).expand(-1, 1, outputs.shape[2])
    final = outputs.gather(1, last).squeeze(1)
    return outputs.masked_fill(~is_real, 0), (final,)


def lstm_with_gated_pads(
    lstm: nn.RNNBase, x: Tensor, lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """`RecurrentEncoder.read_real` of an LSTM without packed sequences.

    Pads are read first, behind input gates that another input closes: i = sigmoid(-10000) = 0, so c
    = f 0 + 0 g = 0 and h = o tanh(0) = 0 until the first real token, and no gradient comes from a
    pad.
    """
    length = x.shape[1]
    places = torch.arange(length, device=x.device)
    lengths = lengths.unsqueeze(1)

    # Pads first, and beside the input a number that is 1 at a pad and closes its gate.
    is_pad = (places < length - lengths).unsqueeze(2)  # (B, S, 1)
    pads_first = reorder(x, (places + lengths) % length)
    further = _further_inputs(x)  # F, all 0 but the first one
    x = torch.cat([pads_first, pad(is_pad.to(x.dtype), (0, further - 1))], dim=2)
    closing = x.new_zeros(4 * lstm.hidden_size, further)
    closing[: lstm.hidden_size, 0] = CLOSED_GATE
    into_gates, *others = lstm.all_weights[0]
    weights = [torch.cat([into_gates, closing], dim=1), *others]

    first = x.new_zeros(1, len(x), lstm.hidden_size)
    outputs, hidden, cell = torch.lstm(x, (first, first), weights, *ONE_LAYER)
    pads_last = reorder(outputs, (places - lengths) % length)
    return pads_last, states_of((hidden, cell))
