"""Recurrent encoder: embeddings and an RNN, GRU or LSTM, in one direction or two.

Axes: B batch, S source length, E embedding, D encoder output, L layers, H units of one direction.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.batch import Padding
from attnlab.model.dropout import Dropout, Rate, dropout_of_words
from attnlab.model.encoders.encoder import Encoded, VectorEncoder, embedding_of
from attnlab.model.pads import flip_real, pads_last, read_real, reorder, states_of, tokens_read
from attnlab.model.recurrence import CELLS, RecurrentState, StateShape, in_single_precision


class RecurrentEncoder(VectorEncoder):
    """A stack of recurrent layers over the embedded source.

    Bahdanau et al. 2015, section 3.2, with two directions. The final state is, of each layer, that
    after the last real token that it reads, the two directions merged; the backward direction ends
    at the first token of the source, and so does the forward one of a reversed source.

    Args:
        cell: the kind of the recurrent layers.
        embedding_size: width E of the token embeddings.
        hidden_size: units of each direction.
        layers: L.
        bidirectional: a second direction reads each layer from its end.
        merge: what becomes of the two directions' outputs and states, in each layer: `concatenate`
            (D = 2 hidden_size), `sum` or `mean` (D = hidden_size). One direction has
            D = hidden_size, and takes no other choice than `concatenate`.
        reverse_source: read the source from its end (Sutskever et al. 2014, section 3.3). The
            outputs stand in the source's own order, so neither masks nor alignments notice.
        word_dropout: of whole words, their embeddings (Sennrich et al. 2016, "Edinburgh", section
            2).
        dropout: on the embeddings.
        layer_dropout: between layers.
        output_dropout: on the outputs, which the attention reads; the final states keep all of
            theirs.
    """

    def __init__(
        self,
        cell: Literal["rnn", "gru", "lstm"],
        embedding_size: PositiveInt,
        hidden_size: PositiveInt,
        layers: PositiveInt,
        bidirectional: bool,
        merge: Literal["concatenate", "sum", "mean"],
        reverse_source: bool,
        word_dropout: Rate,
        dropout: Rate,
        layer_dropout: Rate,
        output_dropout: Rate,
        *,
        source_vocabulary_size: int | None,
        padding: Padding,
    ) -> None:
        super().__init__()
        if not bidirectional and merge != "concatenate":
            raise ValueError(
                f"merge must be concatenate where bidirectional is false, got {merge}: one "
                "direction leaves nothing to merge; choose merge=concatenate"
            )
        self.padding = padding
        self.merge = merge
        self.reverse_source = reverse_source
        self.hidden_size = hidden_size
        self.vector_size = embedding_size

        is_joined = bidirectional and merge == "concatenate"
        self.output_size = 2 * hidden_size if is_joined else hidden_size
        self.state_shape = StateShape(layers, self.output_size, has_cell=cell == "lstm")
        self.backward_size = hidden_size if bidirectional else 0

        self.embedding = embedding_of(source_vocabulary_size, embedding_size)
        self.dropout = dropout_of_words(word_dropout, dropout)
        self.layer_dropout = Dropout(layer_dropout)
        self.output_dropout = Dropout(output_dropout)

        sizes = [embedding_size] + [self.output_size] * (layers - 1)
        backward_sizes = sizes if bidirectional else []
        self.forward_layers = nn.ModuleList(
            CELLS[cell](size, hidden_size, batch_first=True) for size in sizes
        )
        self.backward_layers = nn.ModuleList(
            CELLS[cell](size, hidden_size, batch_first=True) for size in backward_sizes
        )

    def read_vectors(self, vectors: Tensor, source_mask: Tensor) -> Encoded:
        """Return what the layers make of vectors (B, S, E), with the mask (B, S).

        Where pads are skipped, outputs at pads are zero and no state ever sees one.
        """
        x = self.dropout(vectors)  # (B, S, E)
        # 1. Real tokens first; where pads are read, they all count as real.
        skips = self.padding.recurrence == "skip"
        real = tokens_read(source_mask, self.padding)
        order = pads_last(source_mask) if skips and self._pads_may_lead(source_mask) else None
        if order is not None:
            x = reorder(x, order)
            real = reorder(real, order)
        lengths = real.sum(1)

        # 2. Layer by layer, each direction in its own order, and the two of them merged.
        from_the_end = flip_real(real)
        forward_order = from_the_end if self.reverse_source else None
        backward_order = None if self.reverse_source else from_the_end
        finals = []
        backward_finals = []
        for layer, forward_layer in enumerate(self.forward_layers):
            if layer > 0:
                x = self.layer_dropout(x)
            outputs, state = self._read(forward_layer, x, lengths, forward_order)
            if self.backward_layers:
                other, other_state = self._read(
                    self.backward_layers[layer], x, lengths, backward_order
                )
                backward_finals.append(other_state)
                outputs = self._merged(outputs, other)
                pairs = zip(state, other_state, strict=True)
                state = tuple(self._merged(ours, theirs) for ours, theirs in pairs)
            finals.append(state)
            x = outputs

        # 3. Back to where the pads stood.
        if order is not None:
            x = reorder(x, order.argsort(dim=1))
        backward = _stack(backward_finals) if backward_finals else None
        return Encoded(self.output_dropout(x), _stack(finals), backward)

    def _pads_may_lead(self, source_mask: Tensor) -> bool:
        """Whether a pad may stand before a real token.

        Batches of a training stand as `padding` says. A trained model may be asked about others,
        such as a sentence with pads that a reader adds.
        """
        if self.padding.encoder == "pre":
            return True
        if self.training:
            return False
        return bool((source_mask[:, 1:] & ~source_mask[:, :-1]).any())

    def _read(
        self, layer: nn.Module, x: Tensor, lengths: Tensor, order: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Outputs and final state of one direction of one layer, the tokens taken in `order`.

        The outputs stand where their tokens stand.
        """
        assert isinstance(layer, nn.RNNBase)
        run = self.read_real if self.padding.recurrence == "skip" else _read_all
        if order is None:
            return in_single_precision(partial(run, layer), x, lengths)
        outputs, final = in_single_precision(partial(run, layer), reorder(x, order), lengths)
        # Flipping the real tokens twice leaves them as they were.
        return reorder(outputs, order), final

    def read_real(
        self, layer: nn.RNNBase, x: Tensor, lengths: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One layer over the real tokens: as the function `read_real`, or faster in a subclass."""
        return read_real(layer, x, lengths)

    def _merged(self, forward: Tensor, backward: Tensor) -> Tensor:
        if self.merge == "concatenate":
            return torch.cat([forward, backward], dim=-1)
        if self.merge == "sum":
            return forward + backward
        return (forward + backward) / 2


def _read_all(
    recurrence: nn.RNNBase, x: Tensor, lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    outputs, final = recurrence(x)
    return outputs, states_of(final)


def _stack(layers: list[tuple[Tensor, ...]]) -> RecurrentState:
    """The state of the stack, of each layer's (hidden,) or (hidden, cell)."""
    by_kind = zip(*layers, strict=True)  # all hidden states, then all cell states
    return RecurrentState(*(torch.stack(states) for states in by_kind))
