"""The Transformer's encoder: blocks of self-attention.

Axes: B batch, S source length, E width of everything.
"""

from __future__ import annotations

import math

from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.batch import Padding
from attnlab.model.dropout import Rate, dropout_of_words
from attnlab.model.encoders.encoder import Encoded, VectorEncoder, embedding_of, mean_state
from attnlab.model.pads import tokens_read
from attnlab.model.recurrence import StateShape
from attnlab.model.transformer.layers import (
    FeedForward,
    NormPlace,
    Residual,
    SelfAttention,
    draw_scaled,
    last_norm,
)
from attnlab.model.transformer.positions import (
    PositionKind,
    Turn,
    positions_of,
    positions_read,
)


class EncoderBlock(nn.Module):
    """Self-attention and a feed-forward network (Vaswani et al. 2017, section 3.1)."""

    def __init__(
        self,
        attention: SelfAttention,
        size: int,
        feed_forward_size: int,
        norm: NormPlace,
        dropout: float,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.around_attention = Residual(size, norm, dropout)
        self.feed_forward = FeedForward(size, feed_forward_size)
        self.around_feed_forward = Residual(size, norm, dropout)

    def forward(self, x: Tensor, turn: Turn, seen: Tensor | None) -> Tensor:
        """x (B, S, E) -> (B, S, E).

        turn, seen: as for `SelfAttention.project` and `SelfAttention.attend`.
        """
        query, key, value = self.attention.project(self.around_attention.enter(x), turn)
        x = self.around_attention.leave(x, self.attention.attend(query, key, value, seen))
        found = self.feed_forward(self.around_feed_forward.enter(x))
        return self.around_feed_forward.leave(x, found)


class SelfAttentionEncoder(VectorEncoder):
    """Blocks in which each token looks at all others (Vaswani et al. 2017, section 3.1).

    The final state is the mean of the outputs over the real tokens; the paper has none.

    Args:
        embedding_size: width E of embeddings, blocks and outputs (there d_model).
        blocks: their number.
        self_attention_heads: N of each block, which share the width.
        feed_forward_size: inner width of the feed-forward networks.
        positions: `sinusoidal` (Vaswani et al. 2017, section 3.5), `learned` (Gehring et al. 2017),
            or `rotary` (Su et al. 2021).
        longest: the number of learned positions, `<eos>` included; None for the others, which have
            no limit.
        norm: whether a layer norm stands `before` or `after` each sublayer.
        word_dropout: of whole words, their embeddings.
        dropout: on the sum of embeddings and positions.
        block_dropout: on what each sublayer adds.
    """

    longest_source = "longest"

    def __init__(
        self,
        embedding_size: PositiveInt,
        blocks: PositiveInt,
        self_attention_heads: PositiveInt,
        feed_forward_size: PositiveInt,
        positions: PositionKind,
        longest: PositiveInt | None,
        norm: NormPlace,
        word_dropout: Rate,
        dropout: Rate,
        block_dropout: Rate,
        *,
        source_vocabulary_size: int | None,
        padding: Padding,
    ) -> None:
        super().__init__()
        self.padding = padding
        self.vector_size = embedding_size
        self.output_size = embedding_size
        self.state_shape = StateShape(layers=1, size=embedding_size, has_cell=False)

        self.embedding = embedding_of(source_vocabulary_size, embedding_size)
        if self.embedding is not None:
            draw_scaled(self.embedding)
        self.scale = math.sqrt(embedding_size)
        self.positions = positions_of(
            positions, embedding_size, self_attention_heads, longest, "model.encoder.longest"
        )
        self.dropout = dropout_of_words(word_dropout, dropout)
        self.blocks = nn.ModuleList(
            EncoderBlock(
                SelfAttention(embedding_size, self_attention_heads),
                embedding_size,
                feed_forward_size,
                norm,
                block_dropout,
            )
            for _ in range(blocks)
        )
        self.norm = last_norm(embedding_size, norm)

    def embed(self, source: Tensor) -> Tensor:
        """The scaled embeddings of token ids: source (B, S) -> (B, S, E)."""
        return self.scale * super().embed(source)

    def read_vectors(self, vectors: Tensor, source_mask: Tensor) -> Encoded:
        """Return what the blocks make of vectors (B, S, E), with the mask (B, S).

        Where pads are skipped, no token looks at one, and outputs at pads are zero; where they are
        read, they are tokens like others.
        """
        # 1. Mark the positions of all that is read.
        real = tokens_read(source_mask, self.padding)
        positions = positions_read(real)
        x = self.dropout(self.positions.added(vectors, positions))

        # 2. Block by block, each token looks at all that is read.
        seen = real[:, None, None] if self.padding.recurrence == "skip" else None
        turn = self.positions.turn(positions, x.dtype)
        for block in self.blocks:
            x = block(x, turn, seen)
        outputs = self.norm(x).masked_fill(~real.unsqueeze(2), 0)

        # 3. The mean stands for the sentence.
        return Encoded(outputs, mean_state(outputs, real))
