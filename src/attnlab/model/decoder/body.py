"""What every decoder has, whenever its attention looks."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from attnlab.batch import PAD
from attnlab.config.part import Part
from attnlab.model.decoder.decoder_state import DecoderState
from attnlab.model.decoder.stacked_cell import StackedCell
from attnlab.model.input_feeding.input_feeding import InputFeeding
from attnlab.model.readout.readout import Readout


class DecoderBody(nn.Module):
    """The target embedding, the stack of cells, the readout and the input feeding.

    Args:
        into_cell: width of the context that goes into the cell; 0 for none.
        into_readout: width of the context that goes into the readout; 0 for none.
        dropout: on the embeddings.
        layer_dropout: between layers.
    """

    def __init__(
        self,
        cell: str,
        embedding_size: int,
        hidden_size: int,
        layers: int,
        dropout: float,
        layer_dropout: float,
        *,
        into_cell: int,
        into_readout: int,
        readout: Part[Readout],
        input_feeding: Part[InputFeeding] | None,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(target_vocabulary_size, embedding_size, padding_idx=PAD)
        self.dropout = nn.Dropout(dropout)
        self.readout: Readout = readout(
            hidden_size=hidden_size, context_size=into_readout, embedding_size=embedding_size
        )
        self.input_feeding: InputFeeding | None = (
            None if input_feeding is None else input_feeding(readout=self.readout, embedding_size=embedding_size)
        )
        fed_size = 0 if self.input_feeding is None else self.input_feeding.size
        self.cell = StackedCell(cell, embedding_size + fed_size + into_cell, hidden_size, layers, layer_dropout)
        self.state_shape = self.cell.state_shape

    def forward(
        self, embedded: Tensor, context: Tensor | None, state: DecoderState
    ) -> tuple[Tensor, Tensor, DecoderState]:
        """s_t = f(s_{t-1}, [e(y_{t-1}); fed_{t-1}; c]).

        Args:
            embedded: (B, E), the last token.
            context: (B, D), None where it does not go into the cell.
            state: the state before.

        Returns:
            the top layer's s_t (B, H), the embedded token (B, E) behind its dropout, and the state after.
        """
        token = self.dropout(embedded)
        inputs = [x for x in (token, state.fed, context) if x is not None]
        recurrent = self.cell(torch.cat(inputs, dim=-1), state.recurrent)
        return recurrent.hidden[-1], token, replace(state, recurrent=recurrent, position=state.position + 1)

    def all_steps(self, embedded: Tensor, context: Tensor | None, state: DecoderState) -> tuple[Tensor, Tensor]:
        """All of T steps that read nothing of each other but the recurrent state.

        Args:
            embedded: (B, T, E), the last token of each step.
            context: (B, T, D), None where it does not go into the cell.
            state: the state before the first step.

        Returns:
            s_t (B, T, H) and the embedded tokens (B, T, E) behind their dropout.
        """
        tokens = self.dropout(embedded)
        inputs = tokens if context is None else torch.cat([tokens, context], dim=-1)
        return self.cell.all_steps(inputs, state.recurrent), tokens
