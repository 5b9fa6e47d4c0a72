"""Stacked encoder: one encoder over the vectors of another.

Axes: B batch, S source length, D vectors of the first part, E vectors that the upper part reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.model.encoders.encoder import Encoded, Encoder, VectorEncoder
from attnlab.model.transformer.positions import LearnedPositions


class StackedEncoder(Encoder):
    """h = then(x), x = LN(first(source)), or x = W LN(first(source)) + b for another width.

    The first part embeds the tokens; the upper one reads the vectors of the first in place of
    embeddings, with positions of its own where it has some. Outputs, final state and backward state
    are the upper part's. Any part may be of any kind: self-attention over a recurrence is the
    cascaded encoder of Chen et al. 2018, "The Best of Both Worlds", whose first part was trained
    before and stays as it is; here both are trained together.

    The layer norm (Ba et al. 2016) is this lab's: states of a recurrence are small numbers, which
    the upper part's positions would cover.

    A stack may be the first part of another one, for three parts and more.

    Args:
        first: the encoder that embeds the tokens, of any kind.
        then: the encoder over it. Its `embedding_size` is the width E of what it reads.
        layer_norm: the one on the first one's vectors; false leaves them as they are.
    """

    def __init__(
        self,
        first: Part[Encoder],
        then: Part[VectorEncoder],
        layer_norm: bool,
        *,
        source_vocabulary_size: int,
        padding: Padding,
    ) -> None:
        super().__init__()
        self.padding = padding
        self.first: Encoder = first(source_vocabulary_size=source_vocabulary_size, padding=padding)
        self.then: VectorEncoder = then(source_vocabulary_size=None, padding=padding)
        for part, encoder in ((first, self.first), (then, self.then)):
            name_limit(encoder, part.path)

        self.embedding = self.first.embedding
        self.output_size = self.then.output_size
        self.state_shape = self.then.state_shape
        self.backward_size = self.then.backward_size

        self.norm = nn.LayerNorm(self.first.output_size) if layer_norm else nn.Identity()
        given, read = self.first.output_size, self.then.vector_size
        self.W_between = nn.Identity() if given == read else nn.Linear(given, read)

    def name_features(self, ids: Sequence[int]) -> None:
        self.first.name_features(ids)

    def forward(self, source: Tensor, source_mask: Tensor) -> Encoded:
        """Return the encoded source: source (B, S) and its mask (B, S).

        Raises ExperimentError for a source that is longer than one of the parts can read.
        """
        below = self.first(source, source_mask).outputs  # (B, S, D)
        vectors = self.W_between(self.norm(below))  # (B, S, E)
        return self.then.read_vectors(vectors, source_mask)


def name_limit(encoder: Encoder, path: str) -> None:
    """Let the refusal of a long source name the setting of a part by its place in the config."""
    positions = getattr(encoder, "positions", None)
    if isinstance(positions, LearnedPositions):
        positions.path = f"{path}.longest"
