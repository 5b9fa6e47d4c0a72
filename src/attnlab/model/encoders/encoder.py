"""Encoder: the base class of all encoders, and what an encoder returns.

Axes: B batch, S source length, E vectors that are read, D encoder output, L layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from attnlab.batch import PAD
from attnlab.model.recurrence import RecurrentState, StateShape


@dataclass(frozen=True)
class Encoded:
    """The source as the encoder leaves it.

    final: what the encoder knows at the end, of the shape that `Encoder.state_shape` promises. The
        bridge makes the decoder's first state of it. The hidden state of its last layer is the
        summary of the sentence, which decoders without attention read, and which is a classifier's
        query.
    backward: the state of a backward direction at the first token, as FirstBackwardBridge reads it;
        None where nothing is read backwards.
    attended: where the attention may look; None for all real tokens.
    """

    outputs: Tensor  # (B, S, D)
    final: RecurrentState  # (L, B, state_shape.size)
    backward: RecurrentState | None = None  # (L, B, backward_size)
    attended: Tensor | None = None  # (B, S) bool

    def readable(self, source_mask: Tensor) -> Tensor:
        """(B, S) bool: the real tokens that the attention may look at."""
        return source_mask if self.attended is None else self.attended


def mean_state(outputs: Tensor, real: Tensor) -> RecurrentState:
    """The final state of an encoder without recurrence: the mean of its outputs, as one layer.

    It has no cell state. The decoder's first layer may have one: `LinearBridge` maps it from the
    mean, too.

    Args:
        outputs: (B, S, D), zero where `real` is False.
        real: (B, S) bool, True at the tokens of which it is the mean.
    """
    mean = outputs.sum(1) / real.sum(1, keepdim=True)  # (B, D)
    return RecurrentState(mean.unsqueeze(0))


def embedding_of(source_vocabulary_size: int | None, size: int) -> nn.Embedding | None:
    """The embedding of the source tokens; None for the upper part of a stack, which embeds nothing.

    source_vocabulary_size: None for such a part.
    """
    if source_vocabulary_size is None:
        return None
    return nn.Embedding(source_vocabulary_size, size, padding_idx=PAD)


def check_odd(setting: str, tokens: int) -> None:
    """Raise ValueError where tokens around one token do not stand evenly on both sides of it."""
    if tokens % 2 == 0:
        raise ValueError(
            f"{setting} must be odd, so that as many tokens stand before a token as behind it, "
            f"got {tokens}; choose {tokens - 1} or {tokens + 1}"
        )


class Encoder(nn.Module, ABC):
    """Turns source tokens into one vector a token and a final state.

    A subclass sets `output_size` and `state_shape` in its constructor and defines `forward`. All
    else is optional. Its constructor takes its settings, and whichever of the run-time arguments it
    needs: `source_vocabulary_size` (int) and `padding` (`attnlab.batch.Padding`).

    In a config, a decoder takes over those of its settings that the encoder has under the same name
    (`embedding_size`, `layers`, `dropout`, ...), as long as nothing else is chosen for it.

    longest_source: the name of its setting that limits the tokens of a source, `<eos>` included,
        such as the number of learnt positions; None where any source can be read. The setting may
        be null, too, for no limit.
    reads_features: whether it treats features other than the tokens behind them.
    output_size: width D of the vectors.
    state_shape: layers, width and kind of the final state.
    backward_size: width of `Encoded.backward`; 0 where nothing is read backwards.
    attended_whole: whether `Encoded.attended` is None; else only the final state holds what the
        attention may not look at.
    embedding: the layer that embeds the source tokens, whose weights may be tied to the target
        embedding's, and with respect to whose outputs explanations differentiate; None where there
        is no such layer.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("source_vocabulary_size", "padding")

    longest_source: ClassVar[str | None] = None
    reads_features: ClassVar[bool] = False

    output_size: int
    state_shape: StateShape

    backward_size: int = 0

    attended_whole: bool = True

    def __init__(self) -> None:
        super().__init__()
        # An attribute of the class would hide the layer that a subclass assigns.
        self.embedding: nn.Embedding | None = None

    def name_features(self, ids: Sequence[int]) -> None:
        """Take the ids of the features (`<PL>`) in the vocabulary, once, before training.

        The default does not need them. An encoder that does holds them in a buffer, so that a model
        folder has them among its weights.
        """

    @abstractmethod
    def forward(self, source: Tensor, source_mask: Tensor) -> Encoded:
        """Return the encoded source.

        Pads may stand in front of a sentence or behind it. Neither what a real token gets nor the
        final state may depend on them, unless `padding.recurrence` is "read".

        Args:
            source: (B, S) long, token ids.
            source_mask: (B, S) bool, True at real tokens.
        """


class VectorEncoder(Encoder):
    """An encoder whose layers read vectors: those of its embedding, or those of another encoder.

    The second kind makes it the upper part of a `StackedEncoder`, which then gives it None for
    `source_vocabulary_size`: there it has no `embedding`.

    A subclass sets `vector_size`, too, and defines `read_vectors` in place of `forward`.

    vector_size: width E of the vectors that it reads.
    """

    vector_size: int

    def forward(self, source: Tensor, source_mask: Tensor) -> Encoded:
        """Return the encoded source: source (B, S) and its mask (B, S)."""
        return self.read_vectors(self.embed(source), source_mask)

    def embed(self, source: Tensor) -> Tensor:
        """The embeddings of token ids: source (B, S) -> (B, S, E)."""
        assert self.embedding is not None, "the upper part of a stack embeds nothing"
        embedded: Tensor = self.embedding(source)
        return embedded

    @abstractmethod
    def read_vectors(self, vectors: Tensor, source_mask: Tensor) -> Encoded:
        """Return what the layers make of a vector for each token.

        What is promised of pads in `Encoder.forward` holds here, too, whatever their vectors are.

        Args:
            vectors: (B, S, E).
            source_mask: (B, S) bool, True at real tokens.
        """
