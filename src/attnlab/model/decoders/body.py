"""The layers of decoders: target embedding, readout, input feeding; and a stack of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from attnlab.batch import PAD
from attnlab.config.part import Part
from attnlab.model.decoders.cells import StackedCell
from attnlab.model.decoders.step import DecoderState, Token
from attnlab.model.input_feeding import InputFeeding
from attnlab.model.readouts import Readout
from attnlab.model.recurrence import StateShape


class TargetSide(nn.Module):
    """What every decoder has whatever its layers: target embedding, readout and input feeding.

    Args:
        dropout: on the embeddings.
        into_readout: width of the context that goes into the readout; 0 for none.
    """

    state_shape: StateShape

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int,
        dropout: nn.Module,
        *,
        into_readout: int,
        readout: Part[Readout],
        input_feeding: Part[InputFeeding] | None,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(target_vocabulary_size, embedding_size, padding_idx=PAD)
        self.dropout = dropout
        self.readout: Readout = readout(
            hidden_size=hidden_size, context_size=into_readout, embedding_size=embedding_size
        )
        sizes = {"embedding_size": embedding_size, "vocabulary_size": target_vocabulary_size}
        self.input_feeding: InputFeeding | None = None
        if input_feeding is not None:
            self.input_feeding = input_feeding(readout=self.readout, **sizes)

    def embed(self, tokens: Tensor, sparse: bool = False) -> Tensor:
        """Embed tokens: (...) -> (..., E), after dropout.

        sparse: their gradient is a sparse tensor.
        """
        if sparse:
            found = embedding(tokens, self.embedding.weight, PAD, sparse=True)
        else:
            found = self.embedding(tokens)
        return self.dropout(found)

    def known_tokens(self, embedded: Tensor) -> list[Token]:
        """The last tokens of all steps, where none is going to be a guess.

        embedded: (T, B, E), after dropout.
        """
        return [Token(each) for each in embedded]


class DecoderBody(TargetSide):
    """The layers of a recurrent decoder: a stack of cells beside what every decoder has.

    Args:
        into_cell: width of the context that goes into the cell; 0 for none.
        into_readout: width of the context that goes into the readout; 0 for none.
    """

    def __init__(
        self,
        cell: str,
        embedding_size: int,
        hidden_size: int,
        layers: int,
        dropout: nn.Module,
        layer_dropout: float,
        *,
        into_cell: int,
        into_readout: int,
        readout: Part[Readout],
        input_feeding: Part[InputFeeding] | None,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__(
            embedding_size,
            hidden_size,
            dropout,
            into_readout=into_readout,
            readout=readout,
            input_feeding=input_feeding,
            target_vocabulary_size=target_vocabulary_size,
        )
        fed_size = 0 if self.input_feeding is None else self.input_feeding.size
        self.cell = StackedCell(
            cell, embedding_size + fed_size + into_cell, hidden_size, layers, layer_dropout
        )
        self.state_shape = self.cell.state_shape

    def forward(
        self, token: Token, context: Tensor | None, state: DecoderState
    ) -> tuple[Tensor, DecoderState]:
        """s_t = f(s_{t-1}, [e(y_{t-1}); fed_{t-1}; c]).

        Args:
            token: the last one.
            context: (B, D), None where it does not go into the cell.
            state: the state before.

        Returns:
            the top layer's s_t (B, H) and the state after.
        """
        others = [x for x in (state.fed, context) if x is not None]
        recurrent = self.cell(self.from_input(token, others), state.recurrent)
        return recurrent.hidden[-1], replace(
            state, recurrent=recurrent, position=state.position + 1
        )

    def from_input(self, token: Token, others: Sequence[Tensor]) -> Tensor:
        """The cell's product with its input, W [e(y_{t-1}); others] + b: (B, G)."""
        return self.cell.product(torch.cat([token.embedded, *others], dim=-1))

    def all_steps(self, tokens: Tensor, context: Tensor | None, state: DecoderState) -> Tensor:
        """T steps that read nothing of each other but the recurrent state, at once.

        Args:
            tokens: (B, T, E), the last token of each step, after dropout.
            context: (B, T, D), None where it does not go into the cell.
            state: the state before the first step.

        Returns:
            s_t (B, T, H).
        """
        return self.cell.all_steps(
            tokens if context is None else torch.cat([tokens, context], dim=-1), state.recurrent
        )
