"""Bag of words: each token's embedding, whatever stands beside it.

Axes: B batch, S source length, E embedding and output.
"""

from __future__ import annotations

from pydantic import PositiveInt
from torch import Tensor

from attnlab.batch import Padding
from attnlab.model.dropout import Rate, dropout_of_words
from attnlab.model.encoders.encoder import Encoded, VectorEncoder, embedding_of, mean_state
from attnlab.model.pads import tokens_read
from attnlab.model.recurrence import StateShape


class BagOfWordsEncoder(VectorEncoder):
    """h_j = e(x_j): no token knows of another, nor where it stands.

    The final state is the mean of the embeddings, in which the order of a sentence is lost (the
    NBOW of Iyyer et al. 2015, "Deep Unordered Composition Rivals Syntactic Methods for Text
    Classification", section 2.1). What an encoder with an order is worth shows beside it.

    Where pads are read, they have a share of the mean.

    Args:
        embedding_size: width E of embeddings and outputs.
        word_dropout: of whole words, their embeddings.
        dropout: on the embeddings.
    """

    def __init__(
        self,
        embedding_size: PositiveInt,
        word_dropout: Rate,
        dropout: Rate,
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
        self.dropout = dropout_of_words(word_dropout, dropout)

    def read_vectors(self, vectors: Tensor, source_mask: Tensor) -> Encoded:
        """Return vectors (B, S, E) and their mean, with the mask (B, S)."""
        real = tokens_read(source_mask, self.padding)
        # An output layer that shares the embedding's weights learns those of pads, too.
        embedded = vectors.masked_fill(~real.unsqueeze(2), 0)  # (B, S, E)
        outputs = self.dropout(embedded)
        return Encoded(outputs, mean_state(outputs, real))
