"""The gradient of the loss with respect to each encoder state, by distance: does it vanish?

Bengio et al. 1994 ("Learning long-term dependencies with gradient descent is difficult") and
Pascanu et al. 2013 ("On the difficulty of training recurrent neural networks", section 2.1) show
why the gradient that reaches a state k steps earlier shrinks, or explodes, like a product of k
Jacobians. A decoder that receives only the last state reaches the others through that product;
attention (Bahdanau et al. 2015) reads each of them, whatever the distance.

Axes: B batch, S source length, T target length, V vocabulary, H hidden size, N numbers in a state
    (H; 2 H for an LSTM).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnlab.batch import Batch
from attnlab.model.encoders.encoder import Encoded
from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.fast import speed_up
from attnlab.model.recurrence import RecurrentState
from attnlab.model.seq2seq import Seq2Seq


def gradient_flow(model: Seq2Seq, batches: Iterable[Batch]) -> NDArray[np.float64]:
    """Mean gradient norms by distance: entry d is that of the states d tokens before the last.

    The last state is the one that the recurrence hands over to the decoder. A state is all that the
    recurrence carries on (Pascanu's x_k), for an LSTM the cell state too. The model must be in
    evaluation mode; the reference is the decoder's input. The loss of a sentence is its mean
    negative log-likelihood over the target tokens, in nats. The derivative is total: through the
    attention, and through all that comes later in the source.

    Raises ValueError for an encoder that is not a recurrence of one direction.
    """
    encoder = recurrence_of(model)
    speed_up(model)
    norms: list[Tensor] = []
    distances_of_norms: list[Tensor] = []
    for batch in batches:
        real = batch.source_mask
        gradients = state_gradients(model, batch)[real].double()  # (real tokens, N)
        norms.append(gradients.norm(dim=1).cpu())
        distances_of_norms.append(distances(real, encoder.reverse_source)[real].cpu())

    distance = torch.cat(distances_of_norms).numpy()
    sums = np.bincount(distance, weights=torch.cat(norms).numpy())
    return sums / np.bincount(distance)


def recurrence_of(model: Seq2Seq) -> RecurrentEncoder:
    """The encoder of a model, where its states follow each other in one direction.

    Raises ValueError for any other encoder.
    """
    encoder = model.encoder
    if not isinstance(encoder, RecurrentEncoder):
        raise ValueError(
            "gradients are measured at the states of a recurrent encoder, got "
            f"{type(encoder).__name__}; choose model/encoder=gru, lstm or rnn"
        )
    if encoder.backward_size:
        raise ValueError(
            "gradients are measured along one direction, but this encoder has two; choose "
            "model.encoder.bidirectional=false"
        )
    return encoder


def state_gradients(model: Seq2Seq, batch: Batch) -> Tensor:
    """(B, S, N): the gradient of each sentence's loss with respect to its states; 0 at pads.

    There is a state after each source token.
    """
    shape = (*batch.source.shape, state_size(recurrence_of(model)))
    nudges = torch.zeros(shape, dtype=next(model.parameters()).dtype)
    nudges = nudges.to(batch.source.device).requires_grad_()

    # cuDNN computes no gradients of a recurrent layer in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        # Sentences do not see each other, so the gradient of the sum is each one's own.
        loss = sentence_losses(model, batch, nudges).sum()
        (gradients,) = torch.autograd.grad(loss, nudges)
    return gradients.masked_fill(~batch.source_mask.unsqueeze(2), 0)


def sentence_losses(model: Seq2Seq, batch: Batch, nudges: Tensor) -> Tensor:
    """(B,) nats: each sentence's loss, with `nudges` (B, S, N) added to the encoder's states."""
    encoder = recurrence_of(model)
    encoded = encode_by_token(encoder, batch.source, batch.source_mask, nudges)
    # What a forward hook returns takes the place of the output.
    hook = encoder.register_forward_hook(lambda *_: encoded)
    try:
        logits = model.output(model(batch).reading)  # (B, T, V)
    finally:
        hook.remove()
    nll = cross_entropy(logits.transpose(1, 2), batch.target_output, reduction="none")  # (B, T)
    # A pad's readout may hold anything: it is replaced before the sum, not multiplied by zero.
    return nll.masked_fill(~batch.target_mask, 0).sum(1) / batch.target_mask.sum(1)


def distances(source_mask: Tensor, reverse_source: bool) -> Tensor:
    """(B, S) long: how many real tokens the recurrence reads after each one.

    The last token that it reads has distance 0.
    """
    count = source_mask.cumsum(1)
    if reverse_source:
        return count - 1
    return count[:, -1:] - count


# The encoder, run a token at a time: slow, but every state is a tensor whose gradient can be taken.
# torch's recurrent layers return only outputs, and the gradient that reaches a state through the
# next state bypasses its output.
States = tuple[Tensor, ...]
"""(hidden,) or, for an LSTM, (hidden, cell); (B, H) each."""


def state_size(encoder: RecurrentEncoder) -> int:
    """N, the numbers in the state of one layer: H, or 2 H for an LSTM."""
    vectors = 2 if encoder.state_shape.has_cell else 1
    return vectors * encoder.hidden_size


def encode_by_token(
    encoder: RecurrentEncoder, source: Tensor, source_mask: Tensor, nudges: Tensor | None = None
) -> Encoded:
    """Encode source (B, S) as an encoder of one direction in evaluation mode does, up to rounding.

    Args:
        nudges: (B, S, N), added to the top layer's state after each token before anything reads it:
            the hidden state first, behind it an LSTM's cell state. The gradient of a loss with
            respect to nudges of zero is its total derivative with respect to the states.
    """
    reads_pads = encoder.padding.recurrence != "skip"
    read = torch.ones_like(source_mask) if reads_pads else source_mask
    places = list(range(source.shape[1]))
    if encoder.reverse_source:
        places.reverse()

    outputs = encoder.embed(source)  # (B, S, E)
    final_states: list[States] = []
    for number, layer in enumerate(encoder.forward_layers, start=1):
        assert isinstance(layer, nn.RNNBase)
        is_top = number == len(encoder.forward_layers)
        outputs, final = _run_layer(layer, outputs, read, places, nudges if is_top else None)
        final_states.append(final)

    by_kind = zip(*final_states, strict=True)  # all hidden states, then all cell states
    stacked = [torch.stack(states) for states in by_kind]  # (L, B, H) each
    return Encoded(outputs, RecurrentState(*stacked), None)


def _run_layer(
    layer: nn.RNNBase, x: Tensor, read: Tensor, places: Sequence[int], nudges: Tensor | None
) -> tuple[Tensor, States]:
    """One layer over x (B, S, E), its tokens taken in the order of `places`.

    Where `read` (B, S) is False, the state stays as it is.
    """
    zero = x.new_zeros(len(x), layer.hidden_size)
    state: States = (zero, zero) if isinstance(layer, nn.LSTM) else (zero,)
    outputs = [zero] * len(places)
    for s in places:
        new = _step(layer, x[:, s : s + 1], state)
        if nudges is not None:
            added = nudges[:, s].split(layer.hidden_size, dim=1)
            new = tuple(part + nudge for part, nudge in zip(new, added, strict=True))

        is_read = read[:, s : s + 1]  # (B, 1)
        parts = zip(new, state, strict=True)
        state = tuple(torch.where(is_read, after, before) for after, before in parts)
        outputs[s] = torch.where(is_read, state[0], zero)
    return torch.stack(outputs, dim=1), state


def _step(layer: nn.RNNBase, token: Tensor, state: States) -> States:
    """The layer's state after one token (B, 1, E)."""
    with_layer_axis = [part.unsqueeze(0) for part in state]  # (1, B, H) each
    if isinstance(layer, nn.LSTM):
        _, (hidden, cell) = layer(token, (with_layer_axis[0], with_layer_axis[1]))
        return hidden.squeeze(0), cell.squeeze(0)
    _, hidden = layer(token, with_layer_axis[0])
    return (hidden.squeeze(0),)
