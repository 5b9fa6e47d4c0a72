"""Source tokens to one vector a token: embeddings and an RNN, GRU or LSTM, in one direction or
two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.batch import PAD, Padding
from attnlab.model.dropout import Dropout, Rate, dropout_of_words
from attnlab.model.pads import flip_real, pads_last, read_real, reorder, states_of
from attnlab.model.recurrence import CELLS, RecurrentState, StateShape, in_single_precision


@dataclass(frozen=True)
class Encoded:
    """The source as the encoder leaves it.

    final: of each layer, the directions merged: each after the last real token that it reads (the
        backward direction ends at the first token of the source, and so does the forward one of a
        reversed source).
    backward: of each layer, the backward direction alone; None where there is none.
    """

    outputs: Tensor  # (B, S, D)
    final: RecurrentState  # (L, B, D)
    backward: RecurrentState | None  # (L, B, hidden_size)


class Encoder(nn.Module):
    """A stack of recurrent layers over the embedded source (Bahdanau et al. 2015, section 3.2, with
    two directions).

    Args:
        cell: the kind of the recurrent layers.
        embedding_size: width E of the token embeddings.
        hidden_size: units of each direction.
        layers: L.
        bidirectional: a second direction reads each layer from its end.
        merge: what becomes of the two directions' outputs and states, in each layer: `concatenate`
            (D = 2
            hidden_size), `sum` or `mean` (D = hidden_size). One direction has D = hidden_size, and
            takes no other choice than `concatenate`.
        reverse_source: read the source from its end (Sutskever et al. 2014, section 3.3). The
            outputs stand in the source's own order, so neither masks nor alignments notice.
        word_dropout: of whole words, their embeddings (Sennrich et al. 2016, "Edinburgh", section
            2).
        dropout: on the embeddings.
        layer_dropout: between layers.
        output_dropout: on the outputs, which the attention reads; the final states keep all of
            theirs.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("source_vocabulary_size", "padding")

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
        source_vocabulary_size: int,
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
        self.output_size = (
            2 * hidden_size if bidirectional and merge == "concatenate" else hidden_size
        )
        self.hidden_size = hidden_size
        self.state_shape = StateShape(layers, self.output_size, has_cell=cell == "lstm")
        self.embedding = nn.Embedding(source_vocabulary_size, embedding_size, padding_idx=PAD)
        self.dropout = dropout_of_words(word_dropout, dropout)
        self.layer_dropout, self.output_dropout = Dropout(layer_dropout), Dropout(output_dropout)
        sizes = [embedding_size] + [self.output_size] * (layers - 1)
        self.forward_layers = nn.ModuleList(
            CELLS[cell](size, hidden_size, batch_first=True) for size in sizes
        )
        self.backward_layers = nn.ModuleList(
            CELLS[cell](size, hidden_size, batch_first=True)
            for size in (sizes if bidirectional else [])
        )

    def forward(self, source: Tensor, source_mask: Tensor) -> Encoded:
        """source (B, S) and its mask -> the encoded source.

        Where pads are skipped, outputs at pads are zero and no state ever sees one.
        """
        x = self.dropout(self.embedding(source))  # (B, S, E)
        # 1. Real tokens first; where pads are read, they all count as real.
        skips = self.padding.recurrence == "skip"
        real = source_mask if skips else torch.ones_like(source_mask)
        order = pads_last(source_mask) if skips and self.padding.encoder == "pre" else None
        if order is not None:
            x, real = reorder(x, order), reorder(real, order)
        lengths, backwards = real.sum(1), flip_real(real)
        # 2. Layer by layer, each direction in its own order, and the two of them merged.
        finals, backward_finals = [], []
        for layer, forward_layer in enumerate(self.forward_layers):
            x = self.layer_dropout(x) if layer > 0 else x
            outputs, state = self._read(
                forward_layer, x, lengths, backwards if self.reverse_source else None
            )
            if self.backward_layers:
                other, other_state = self._read(
                    self.backward_layers[layer],
                    x,
                    lengths,
                    None if self.reverse_source else backwards,
                )
                backward_finals.append(other_state)
                outputs = self._merged(outputs, other)
                state = tuple(
                    self._merged(ours, theirs)
                    for ours, theirs in zip(state, other_state, strict=True)
                )
            finals.append(state)
            x = outputs
        # 3. Back to where the pads stood.
        if order is not None:
            x = reorder(x, order.argsort(dim=1))
        return Encoded(
            self.output_dropout(x),
            _stack(finals),
            _stack(backward_finals) if backward_finals else None,
        )

    def _read(
        self, layer: nn.Module, x: Tensor, lengths: Tensor, order: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One direction of one layer, the tokens taken in `order`: outputs where their tokens
        stand, final states.
        """
        assert isinstance(layer, nn.RNNBase)
        x = x if order is None else reorder(x, order)
        run = self.read_real if self.padding.recurrence == "skip" else _read_all
        outputs, final = in_single_precision(partial(run, layer), x, lengths)
        # Flipping the real tokens twice leaves them as they were.
        return outputs if order is None else reorder(outputs, order), final

    def read_real(
        self, layer: nn.RNNBase, x: Tensor, lengths: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One layer over the real tokens: as the function `read_real`, or faster in a subclass."""
        return read_real(layer, x, lengths)

    def _merged(self, forward: Tensor, backward: Tensor) -> Tensor:
        if self.merge == "concatenate":
            return torch.cat([forward, backward], dim=-1)
        return forward + backward if self.merge == "sum" else (forward + backward) / 2


def _read_all(
    recurrence: nn.RNNBase, x: Tensor, lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    outputs, final = recurrence(x)
    return outputs, states_of(final)


def _stack(layers: list[tuple[Tensor, ...]]) -> RecurrentState:
    """Each layer's (hidden,) or (hidden, cell) -> the state of the stack."""
    return RecurrentState(*(torch.stack(states) for states in zip(*layers, strict=True)))
