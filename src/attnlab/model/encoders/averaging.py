"""Averaging encoder: the mean of neighbouring embeddings of tokens and positions.

Axes: B batch, S source length, E embedding and output, k window.
"""

from __future__ import annotations

from pydantic import PositiveInt
from torch import Tensor
from torch.nn.functional import avg_pool1d

from attnlab.batch import Padding
from attnlab.model.dropout import Rate, dropout_of_words
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


class AveragingEncoder(VectorEncoder):
    """h_j = 1/k (e_{j-⌊k/2⌋} + ... + e_{j+⌊k/2⌋}), e_j the sum of token's and position's embedding.

    The pooling encoder of Gehring, Auli, Grangier and Dauphin 2017, "A Convolutional Encoder Model
    for Neural Machine Translation", section 3.1, there with k = 5. What stands before and behind a
    sentence counts as 0, and so does a pad, so that the sum is always divided by k, as in the
    authors' code.

    The final state is the mean of the outputs over the real tokens. Where pads are read, they are
    tokens like others: they have positions, a place in the windows and a share of the mean.

    Not as there: the attention compares and sums the same h, where the paper compares h and sums e.

    Args:
        embedding_size: width E of embeddings and outputs.
        window: k, the tokens of a mean, an odd number.
        longest: the number of positions, the longest source that can be read, `<eos>` included.
        word_dropout: of whole words, their embeddings with their positions.
        dropout: on the sum of embeddings and positions.
    """

    longest_source = "longest"

    def __init__(
        self,
        embedding_size: PositiveInt,
        window: PositiveInt,
        longest: PositiveInt,
        word_dropout: Rate,
        dropout: Rate,
        *,
        source_vocabulary_size: int | None,
        padding: Padding,
    ) -> None:
        super().__init__()
        check_odd("window", window)
        self.padding = padding
        self.window = window
        self.vector_size = embedding_size
        self.output_size = embedding_size
        self.state_shape = StateShape(layers=1, size=embedding_size, has_cell=False)

        self.embedding = embedding_of(source_vocabulary_size, embedding_size)
        self.positions = LearnedPositions(embedding_size, longest, "model.encoder.longest")
        self.dropout = dropout_of_words(word_dropout, dropout)

    def read_vectors(self, vectors: Tensor, source_mask: Tensor) -> Encoded:
        """Return the means of vectors (B, S, E), with the mask (B, S).

        Outputs at skipped pads are zero. Raises ExperimentError for a source that is too long.
        """
        # 1. Mark the positions of the vectors.
        real = tokens_read(source_mask, self.padding)
        not_read = ~real.unsqueeze(2)  # (B, S, 1)
        marked = self.positions.added(vectors, positions_read(real))
        embedded = self.dropout(marked)  # (B, S, E)

        # 2. Average over each window, as if each sentence stood alone. On CUDA, torch 2.11 gets the
        # gradient wrong where the numbers of a row do not lie side by side.
        alone = embedded.masked_fill(not_read, 0).mT.contiguous()  # (B, E, S)
        outputs = avg_pool1d(alone, self.window, stride=1, padding=self.window // 2).mT
        outputs = outputs.masked_fill(not_read, 0)
        return Encoded(outputs, mean_state(outputs, real))
