"""The gradient of the loss with respect to each encoder state, by distance: does it vanish?

Bengio et al. 1994 ("Learning long-term dependencies with gradient descent is difficult") and
Pascanu et al. 2013
("On the difficulty of training recurrent neural networks", section 2.1) show why what a state k
steps earlier receives from a loss shrinks, or explodes, like a product of k Jacobians. A decoder
that receives only the last state reaches the others through that product; attention (Bahdanau et
al. 2015) reads each of them, whatever the distance.

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
from attnlab.model.encoder import Encoded, Encoder
from attnlab.model.recurrence import RecurrentState
from attnlab.model.seq2seq import Seq2Seq


def gradient_flow(model: Seq2Seq, batches: Iterable[Batch]) -> NDArray[np.float64]:
    """Gradient norms by distance: entry d is the mean over the states d tokens before the one that
    the recurrence
    hands over.

    The state is all that the recurrence carries on (Pascanu's x_k), for an LSTM the cell state too.
    The model must be in evaluation mode; the reference is fed. The loss of a sentence is its mean
    negative log-likelihood over the target tokens, in nats. The derivative is total: through the
    attention, and through all that comes later in the source.
    """
    # Of every real source token, (tokens,), and its distance
    norms, places = list[Tensor](), list[Tensor]()
    for batch in batches:
        norms.append(state_gradients(model, batch)[batch.source_mask].double().norm(dim=1).cpu())
        places.append(
            distances(batch.source_mask, model.encoder.reverse_source)[batch.source_mask].cpu()
        )
    distance = torch.cat(places).numpy()
    return np.bincount(distance, weights=torch.cat(norms).numpy()) / np.bincount(distance)


def state_gradients(model: Seq2Seq, batch: Batch) -> Tensor:
    """(B, S, N): of each sentence's loss, with respect to the state after each of its source
    tokens; 0 at pads.
    """
    nudges = torch.zeros(
        *batch.source.shape, state_size(model.encoder), dtype=model.output.weight.dtype
    )
    nudges = nudges.to(batch.source.device).requires_grad_()
    # Sentences do not see each other, so the gradient of the sum is each one's own. cuDNN would
    # refuse a model in evaluation mode its gradients.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        loss = sentence_losses(model, batch, nudges).sum()
        (gradients,) = torch.autograd.grad(loss, nudges)
    return gradients.masked_fill(~batch.source_mask.unsqueeze(2), 0)


def sentence_losses(model: Seq2Seq, batch: Batch, nudges: Tensor) -> Tensor:
    """(B,) nats: the loss of each sentence, with `nudges` (B, S, N) added to the encoder's
    states.
    """
    encoded = encode_by_token(model.encoder, batch.source, batch.source_mask, nudges)
    # What a forward hook returns takes the place of the output.
    hook = model.encoder.register_forward_hook(lambda *_: encoded)
    try:
        logits = model.output(model(batch).readout)  # (B, T, V)
    finally:
        hook.remove()
    nll = cross_entropy(logits.transpose(1, 2), batch.target_output, reduction="none")  # (B, T)
    # A pad's readout may hold anything: it is replaced before the sum, not multiplied by zero.
    return nll.masked_fill(~batch.target_mask, 0).sum(1) / batch.target_mask.sum(1)


def distances(source_mask: Tensor, reverse_source: bool) -> Tensor:
    """(B, S) long: how many real tokens the recurrence reads after each one; 0 at the last that it
    reads.
    """
    count = source_mask.cumsum(1)
    return count - 1 if reverse_source else count[:, -1:] - count


# The encoder, run a token at a time: slow, but every state is a tensor whose gradient can be taken.
# torch's recurrent layers return only outputs, and the gradient that reaches a state through the
# next state bypasses its output.
States = tuple[Tensor, ...]
"""(hidden,) or, for an LSTM, (hidden, cell); (B, H) each."""


def state_size(encoder: Encoder) -> int:
    """N, the numbers in the state of one layer: H, or 2 H for an LSTM."""
    return encoder.hidden_size * (2 if encoder.state_shape.has_cell else 1)


def encode_by_token(
    encoder: Encoder, source: Tensor, source_mask: Tensor, nudges: Tensor | None = None
) -> Encoded:
    """Encode source (B, S) as an encoder of one direction in evaluation mode does, up to rounding.

    Args:
        nudges: (B, S, N), added to the top layer's state after each token before anything reads it:
            the hidden state first, behind it an LSTM's cell state. The gradient of a loss with
            respect to nudges of zero is its total derivative with respect to the states.
    """
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
    return Encoded(
        x, RecurrentState(*(torch.stack(states) for states in zip(*finals, strict=True))), None
    )


def _run(
    layer: nn.RNNBase, x: Tensor, read: Tensor, places: Sequence[int], nudges: Tensor | None
) -> tuple[Tensor, States]:
    """One layer over x (B, S, E), its tokens taken in the order of `places`; where not `read` (B,
    S), no step.
    """
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
