"""An LSTM that reads its pads behind closed gates, by oneDNN's recurrence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.pads import reorder, states_of
from attnlab.model.recurrence import ONE_LAYER

# The share of real tokens below which packed sequences are faster than oneDNN's recurrence.
LEAST_REAL = 0.5 if torch.backends.cpu.get_cpu_capability().startswith("AVX512") else 0.8
CLOSED_GATE = -10_000.0  # what the sigmoid of a gate makes exactly 0, in bfloat16 too


class FastEncoder(RecurrentEncoder):
    """On a CPU, LSTM layers read batches with few pads by `lstm_with_gated_pads`."""

    def read_real(
        self, layer: nn.RNNBase, x: Tensor, lengths: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        if (
            isinstance(layer, nn.LSTM)
            and x.device.type == "cpu"
            and lengths.sum() >= LEAST_REAL * x[..., 0].numel()
        ):
            return lstm_with_gated_pads(layer, x, lengths)
        return super().read_real(layer, x, lengths)


def lstm_with_gated_pads(
    lstm: nn.LSTM, x: Tensor, lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """`RecurrentEncoder.read_real` of an LSTM, by oneDNN's recurrence.

    It is faster than torch's own, and takes no packed sequences.

    Pads are read first, behind input gates that another input closes: i = sigmoid(-10000) = 0, so c
    = f 0 + 0 g = 0 and h = o tanh(0) = 0 until the first real token, and no gradient comes from a
    pad.
    """
    places, lengths = torch.arange(x.shape[1], device=x.device), lengths.unsqueeze(1)
    pads = (places < x.shape[1] - lengths).unsqueeze(2)
    x = torch.cat([reorder(x, (places + lengths) % x.shape[1]), pads.to(x.dtype)], dim=2)
    closing = x.new_zeros(4 * lstm.hidden_size, 1)
    closing[: lstm.hidden_size] = CLOSED_GATE
    into_gates, *others = lstm.all_weights[0]
    weights = [torch.cat([into_gates, closing], dim=1), *others]
    first = x.new_zeros(1, len(x), lstm.hidden_size)
    outputs, hidden, cell = torch.lstm(x, (first, first), weights, *ONE_LAYER)
    return reorder(outputs, (places - lengths) % x.shape[1]), states_of((hidden, cell))
