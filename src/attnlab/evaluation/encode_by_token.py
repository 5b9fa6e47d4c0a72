"""The encoder a token at a time: slow, but every state is a tensor of its own, whose gradient can be asked for.

torch runs a recurrent layer over the whole source at once and shows no state on the way but for its output, and what
flows back to a state through the next one passes that output by.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from attnlab.model.encoder import Encoded, Encoder
from attnlab.model.recurrence import RecurrentState

States = tuple[Tensor, ...]
"""(hidden,) or, for an LSTM, (hidden, cell); (B, H) each."""


def state_size(encoder: Encoder) -> int:
    """N, the numbers in the state of one layer: H, or 2 H for an LSTM."""
    return encoder.hidden_size * (2 if encoder.state_shape.has_cell else 1)


def encode_by_token(encoder: Encoder, source: Tensor, source_mask: Tensor, nudges: Tensor | None = None) -> Encoded:
    """What the encoder makes of source (B, S) in evaluation mode, to rounding.

    Args:
        nudges: (B, S, N), added to the top layer's state after each token before anything reads it: the hidden state
            first, behind it an LSTM's cell state. The gradient of a loss with respect to nudges of zero is its total
            derivative with respect to the states.

    Raises:
        ValueError: an encoder with two directions, where no distance would be that to the end.
    """
    if len(encoder.backward_layers) > 0:
        raise ValueError("bidirectional must be false to measure by distance: two directions end at either end")
    read = source_mask if encoder.padding.recurrence == "skip" else torch.ones_like(source_mask)
    places = list(range(source.shape[1]))
    if encoder.reverse_source:
        places.reverse()
    x = encoder.embedding(source)  # (B, S, E)
    finals: list[States] = []
    for number, layer in enumerate(encoder.forward_layers, start=1):
        assert isinstance(layer, nn.RNNBase)
        on_top = number == len(encoder.forward_layers)
        x, final = _run(layer, x, read, places, nudges if on_top else None)
        finals.append(final)
    return Encoded(x, RecurrentState(*(torch.stack(states) for states in zip(*finals, strict=True))), None)


def _run(
    layer: nn.RNNBase, x: Tensor, read: Tensor, places: Sequence[int], nudges: Tensor | None
) -> tuple[Tensor, States]:
    """One layer over x (B, S, E), its tokens taken in the order of `places`; where not `read` (B, S), no step."""
    zero = x.new_zeros(len(x), layer.hidden_size)
    state: States = (zero, zero) if isinstance(layer, nn.LSTM) else (zero,)
    outputs = [zero] * len(places)
    for s in places:
        before = tuple(part.unsqueeze(0) for part in state)  # (1, B, H) each
        _, after = layer(x[:, s : s + 1], before if isinstance(layer, nn.LSTM) else before[0])
        new = tuple(part.squeeze(0) for part in (after if isinstance(after, tuple) else (after,)))
        if nudges is not None:
            added = nudges[:, s].split(layer.hidden_size, dim=1)
            new = tuple(part + nudge for part, nudge in zip(new, added, strict=True))
        is_read = read[:, s : s + 1]  # (B, 1)
        state = tuple(torch.where(is_read, ours, old) for ours, old in zip(new, state, strict=True))
        outputs[s] = torch.where(is_read, state[0], zero)
    return torch.stack(outputs, dim=1), state
