"""An encoder without a recurrence."""

from __future__ import annotations

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn.functional import glu

from attnlab.batch import PAD
from attnlab.model.attention.memory import count_positions
from attnlab.model.dropout import Rate
from attnlab.model.encoders.encoder import Encoded, Encoder
from attnlab.model.recurrence import RecurrentState, StateShape

LONGEST = 256  # tokens with a position of their own; all behind them share the last one


class GatedConvolutionsEncoder(Encoder):
    """Blocks of gated convolutions over words and positions (after Gehring et al. 2017, section 3).

    Args:
        embedding_size: width of words, positions and outputs.
        blocks: their number, one above the other.
        kernel: tokens that a convolution sees, an odd number.
        summary_size: width of the final state, which is made of the mean of the outputs.
        dropout: on the embeddings.
    """

    def __init__(
        self,
        embedding_size: PositiveInt,
        blocks: PositiveInt,
        kernel: PositiveInt,
        summary_size: PositiveInt,
        dropout: Rate,
        *,
        source_vocabulary_size: int,
    ) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, or the outputs would shift; got {kernel}")
        # What a decoder must know.
        self.output_size = embedding_size
        self.state_shape = StateShape(layers=1, size=summary_size, has_cell=False)

        self.embedding = nn.Embedding(source_vocabulary_size, embedding_size, padding_idx=PAD)
        self.places = nn.Embedding(LONGEST, embedding_size)
        self.dropout = nn.Dropout(dropout)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embedding_size, 2 * embedding_size, kernel, padding=kernel // 2)
            for _ in range(blocks)
        )
        self.summary = nn.Linear(embedding_size, summary_size)

    def forward(self, source: Tensor, source_mask: Tensor) -> Encoded:
        pads = ~source_mask.unsqueeze(2)  # (B, S, 1)
        places = count_positions(source_mask).clamp(max=LONGEST - 1)
        x = self.dropout(self.embedding(source) + self.places(places))  # (B, S, E)
        for convolution in self.convolutions:
            x = x.masked_fill(pads, 0)  # as if the sentence stood alone
            x = x + glu(convolution(x.mT).mT, dim=-1)
        x = x.masked_fill(pads, 0)

        mean = x.sum(1) / source_mask.sum(1, keepdim=True)  # (B, E)
        summary = torch.tanh(self.summary(mean))
        return Encoded(outputs=x, final=RecurrentState(summary.unsqueeze(0)))
