"""Convolutional encoder: gated convolutions over embedded tokens and positions.

Axes: B batch, S source length, E embedding and output, H units of a convolution, k kernel.
"""

from __future__ import annotations

import math

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn.functional import glu

from attnlab.batch import PAD, Padding
from attnlab.model.dropout import Dropout, Rate, dropout_of_words
from attnlab.model.encoders.encoder import (
    Encoded,
    VectorEncoder,
    check_odd,
    embedding_of,
    mean_state,
)
from attnlab.model.pads import tokens_read
from attnlab.model.recurrence import StateShape
from attnlab.model.transformer.positions import LearnedPositions, positions_read

HALF = math.sqrt(0.5)  # the sum of two alike vectors, times this, varies as each of them


class ConvolutionalEncoder(VectorEncoder):
    """The encoder of ConvS2S: each block sees k tokens, so that L of them see L (k - 1) + 1.

    With e_j the sum of the embeddings of token j and of its position,

        z_0 = W_in e + b_in,  z_l = √½ (z_{l-1} + glu(conv_l(z_{l-1}))),  glu([a; b]) = a ⊙ σ(b),
        h = √½ (W_out z_L + b_out + e)

    (Gehring, Auli, Grangier, Yarats and Dauphin 2017, "Convolutional Sequence to Sequence
    Learning", sections 3.1 to 3.4, equation 2). What stands before and behind a sentence
    counts as 0 in each convolution, and so does a pad. Weights are first drawn as in section 3.5.

    The final state is the mean of the outputs over the real tokens. Where pads are read, they are
    tokens like others: they have positions, convolutions and a share of the mean.

    Not as there: the attention compares h too, where the paper compares W_out z_L + b_out and sums
    h; weights are not normalised.

    Args:
        embedding_size: width E of embeddings and outputs.
        hidden_size: units H of each convolution.
        blocks: L, the number of convolutions.
        kernel: k, the tokens that a convolution sees, an odd number.
        longest: the number of positions, the longest source that can be read, `<eos>` included.
        word_dropout: of whole words, their embeddings with their positions.
        dropout: on the sum of embeddings and positions.
        block_dropout: on what each convolution reads.
    """

    longest_source = "longest"

    def __init__(
        self,
        embedding_size: PositiveInt,
        hidden_size: PositiveInt,
        blocks: PositiveInt,
        kernel: PositiveInt,
        longest: PositiveInt,
        word_dropout: Rate,
        dropout: Rate,
        block_dropout: Rate,
        *,
        source_vocabulary_size: int | None,
        padding: Padding,
    ) -> None:
        super().__init__()
        check_odd("kernel", kernel)
        self.padding = padding
        self.vector_size = embedding_size
        self.output_size = embedding_size
        self.state_shape = StateShape(layers=1, size=embedding_size, has_cell=False)

        self.embedding = embedding_of(source_vocabulary_size, embedding_size)
        self.positions = LearnedPositions(embedding_size, longest, "model.encoder.longest")
        self.dropout = dropout_of_words(word_dropout, dropout)
        self.block_dropout = Dropout(block_dropout)
        self.W_in = nn.Linear(embedding_size, hidden_size)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(hidden_size, 2 * hidden_size, kernel, padding=kernel // 2)
            for _ in range(blocks)
        )
        self.W_out = nn.Linear(hidden_size, embedding_size)
        self._draw(1 - dropout, 1 - block_dropout)

    def read_vectors(self, vectors: Tensor, source_mask: Tensor) -> Encoded:
        """Return the convolutions of vectors (B, S, E), with the mask (B, S).

        Outputs at skipped pads are zero. Raises ExperimentError for a source that is too long.
        """
        # 1. Mark the positions of the vectors.
        real = tokens_read(source_mask, self.padding)
        not_read = ~real.unsqueeze(2)  # (B, S, 1)
        marked = self.positions.added(vectors, positions_read(real))
        embedded = self.dropout(marked)  # (B, S, E)

        # 2. Convolve, block by block, as if each sentence stood alone.
        z = self.W_in(embedded)  # (B, S, H)
        for convolution in self.convolutions:
            x = self.block_dropout(z.masked_fill(not_read, 0))
            gated = glu(convolution(x.mT), dim=1).mT  # (B, H, S) -> (B, S, H)
            z = HALF * (z + gated)

        # 3. What the blocks found, and what the token is.
        outputs = HALF * (self.W_out(z) + embedded)
        outputs = outputs.masked_fill(not_read, 0)
        return Encoded(outputs, mean_state(outputs, real))

    def _draw(self, kept: float, kept_by_blocks: float) -> None:
        """Draw weights so that the outputs of each layer vary as its inputs (section 3.5).

        kept, kept_by_blocks: what dropout leaves of the embeddings, and of a convolution's input.
        """
        for vectors in (self.embedding, self.positions.vectors):
            if vectors is not None:
                nn.init.normal_(vectors.weight, std=0.1)
        if self.embedding is not None:
            with torch.no_grad():
                self.embedding.weight[PAD].zero_()

        nn.init.normal_(self.W_in.weight, std=math.sqrt(kept / self.W_in.in_features))
        nn.init.normal_(self.W_out.weight, std=math.sqrt(1 / self.W_out.in_features))
        # A gate halves what passes through it, and so quarters its variance.
        for name, weight in self.convolutions.named_parameters():
            if name.endswith("weight"):  # (2 H, H, k)
                read = weight[0].numel()
                nn.init.normal_(weight, std=math.sqrt(4 * kept_by_blocks / read))
            else:
                nn.init.zeros_(weight)
        nn.init.zeros_(self.W_in.bias)
        nn.init.zeros_(self.W_out.bias)
