"""The tagger: encode, let each token look at the sentence, decide for each token.

Axes: B batch, S source length, D encoder output, G tags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.model.attention.attention import remember
from attnlab.model.attention.mechanism import LinearProjection, Mechanism
from attnlab.model.attention.memory import count_positions
from attnlab.model.attention.score import Score
from attnlab.model.encoders.encoder import Encoder
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.scopes import Scope


@dataclass(frozen=True)
class Tagged:
    """What the tagger makes of a batch."""

    log_probabilities: Tensor  # (B, S, G)
    attention_weights: Tensor  # (B, S, S), row s: where token s looked


class Tagger(nn.Module):
    """h = encode(x), c_s = attend(h_s, h), z_s = W [h_s; c_s] + b."""

    runtime_arguments: ClassVar[tuple[str, ...]] = (
        "source_vocabulary_size",
        "num_tags",
        "padding",
    )

    def __init__(
        self,
        encoder: Part[Encoder],
        attention: Part[Score],
        projection: Part[LinearProjection] | None,
        normaliser: Part[Normaliser],
        scope: Part[Scope],
        *,
        source_vocabulary_size: int,
        num_tags: int,
        padding: Padding,
    ) -> None:
        super().__init__()
        self.padding = padding
        self.encoder: Encoder = encoder(
            source_vocabulary_size=source_vocabulary_size, padding=padding
        )
        size = self.encoder.output_size
        mechanism = Mechanism(attention, normaliser, scope, projection, history=None, heads=None)
        self.attention = mechanism.build(query_size=size, value_size=size)
        self.output = nn.Linear(2 * size, num_tags)

    def forward(self, source: Tensor, source_mask: Tensor) -> Tagged:
        """source (B, S) and its mask."""
        # 1. Read the sentence.
        encoded = self.encoder(source, source_mask)
        memory = remember(encoded, source_mask, self.padding.attention_masked, self.attention, None)
        # 2. Each token looks at the sentence.
        queries = encoded.outputs  # (B, S, D)
        context, weights = self.attention(queries, memory, count_positions(source_mask))
        # 3. Decide for each token.
        logits = self.output(torch.cat([queries, context], dim=-1))
        return Tagged(logits.float().log_softmax(-1), weights.mean(1))
