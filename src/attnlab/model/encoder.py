"""Source tokens to one vector a token: embeddings and an RNN, GRU or LSTM, in one direction or two."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlab.batch import PAD, Padding
from attnlab.model.recurrent_state import CELLS, RecurrentState, StateShape
from attnlab.model.shift import inverse, pads_last, reorder


class Encoder(nn.Module):
    """A stack of recurrent layers over the embedded source.

    The two directions' outputs are concatenated, so D = hidden_size or 2 hidden_size, and so are their final
    states: the forward one after the last real token, the backward one after the first (Bahdanau 2015, section 3.2).

    Args:
        hidden_size: units of each direction.
        dropout: on the embeddings and between layers.
    """

    def __init__(
        self,
        cell: Literal["rnn", "gru", "lstm"],
        embedding_size: PositiveInt,
        hidden_size: PositiveInt,
        layers: PositiveInt,
        bidirectional: bool,
        dropout: Annotated[float, Field(ge=0, lt=1)],
        *,
        source_vocabulary_size: int,
        padding: Padding,
    ) -> None:
        super().__init__()
        self.padding = padding
        self.directions = 2 if bidirectional else 1
        self.output_size = self.directions * hidden_size
        self.state_shape = StateShape(layers, self.output_size, has_cell=cell == "lstm")
        self.embedding = nn.Embedding(source_vocabulary_size, embedding_size, padding_idx=PAD)
        self.dropout = nn.Dropout(dropout)
        self.recurrence = CELLS[cell](
            embedding_size,
            hidden_size,
            num_layers=layers,
            bidirectional=bidirectional,
            dropout=dropout if layers > 1 else 0.0,
            batch_first=True,
        )

    def forward(self, source: Tensor, source_mask: Tensor) -> tuple[Tensor, RecurrentState]:
        """source (B, S) and its mask -> encoder outputs (B, S, D), final state (L, B, D).

        Where pads are skipped, outputs at pads are zero and no state ever sees one.
        """
        embedded = self.dropout(self.embedding(source))  # (B, S, E)
        if self.padding.recurrence == "read":
            outputs, final = self.recurrence(embedded)
        elif self.padding.encoder == "post":
            outputs, final = self._skip_pads(embedded, source_mask)
        else:
            order = pads_last(source_mask)
            outputs, final = self._skip_pads(reorder(embedded, order), source_mask)
            outputs = reorder(outputs, inverse(order))
        hidden, cell = final if isinstance(final, tuple) else (final, None)
        return outputs, RecurrentState(self._join(hidden), None if cell is None else self._join(cell))

    def _skip_pads(self, embedded: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | tuple[Tensor, Tensor]]:
        packed = pack_padded_sequence(embedded, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        outputs, final = self.recurrence(packed)
        return pad_packed_sequence(outputs, batch_first=True, total_length=mask.shape[1])[0], final

    def _join(self, state: Tensor) -> Tensor:
        """(L * directions, B, H) -> (L, B, D): the directions of one layer side by side."""
        by_layer = state.unflatten(0, (-1, self.directions))  # (L, directions, B, H)
        return by_layer.transpose(1, 2).flatten(2)
