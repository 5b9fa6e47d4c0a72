"""Encoder with features: one encoder reads the features before a source, and one the source.

Axes: B batch, S source length, F output of the features' encoder, D of the source's, V vocabulary,
    L layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from attnlab.batch import EOS, PAD, UNK, Padding
from attnlab.config.part import Part
from attnlab.model.encoders.encoder import Encoded, Encoder
from attnlab.model.encoders.stacked import name_limit
from attnlab.model.recurrence import RecurrentState, StateShape


class WithFeaturesEncoder(Encoder):
    """h_i = W f_i + b of a feature, h_i = s_i of another token; final state [s_end; f_end].

    The tags of an inflection have no order that matters, and the characters of a lemma have. So
    each kind gets an encoder of its own, as in the systems of inflection with two encoders (Ács
    2018, "BME-HAS System for CoNLL-SIGMORPHON 2018 Shared Task"; Peters and Martins 2019, "IT-IST
    at the SIGMORPHON 2019 Shared Task"). Those also have two attentions; here one attention reads
    both encoders' outputs, the flat combination of Libovický and Helcl 2017, "Attention Strategies
    for Multi-Source Sequence-to-Sequence Learning", section 3.2.

    Each part reads a sentence of its own, which ends with `<eos>`: the features that lead a source,
    and what stands behind them. A row without features gives the features' encoder `<eos>` alone.
    An unknown token counts as a feature where a known feature follows it at the front.

    The final state has the layers of the source's part, and beside each of them the summary of the
    features, the hidden state of their encoder's last layer. A cell state has their cell state
    beside it, or their hidden state where there is none. `backward` is the source's part's.

    Args:
        features: the encoder of the features, of any kind.
        source: the encoder of the rest, of any kind.
        read: what the attention reads: `both`, or the `source` alone, where the features are in the
            final state, and W is not there. W is left out too where both are as wide.
    """

    reads_features = True

    is_feature: Tensor

    def __init__(
        self,
        features: Part[Encoder],
        source: Part[Encoder],
        read: Literal["both", "source"],
        *,
        source_vocabulary_size: int,
        padding: Padding,
    ) -> None:
        super().__init__()
        self.padding = padding
        self.attended_whole = read == "both"
        given = {"source_vocabulary_size": source_vocabulary_size, "padding": padding}
        self.features: Encoder = features(**given)
        self.source: Encoder = source(**given)
        for part, encoder in ((features, self.features), (source, self.source)):
            name_limit(encoder, part.path)

        self.output_size = self.source.output_size
        of_source, of_features = self.source.state_shape, self.features.state_shape
        self.state_shape = StateShape(
            of_source.layers, of_source.size + of_features.size, of_source.has_cell
        )
        self.backward_size = self.source.backward_size

        needs_map = self.attended_whole and self.features.output_size != self.output_size
        self.W_features: nn.Module = nn.Identity()
        if needs_map:
            self.W_features = nn.Linear(self.features.output_size, self.output_size)
        # (V,) of the vocabulary. A buffer, which the weights of a model folder keep.
        none = torch.zeros(source_vocabulary_size, dtype=torch.bool)
        self.register_buffer("is_feature", none)

    def name_features(self, ids: Sequence[int]) -> None:
        self.is_feature.zero_()
        self.is_feature[list(ids)] = True

    def forward(self, source: Tensor, source_mask: Tensor) -> Encoded:
        """Return the encoded source: source (B, S) and its mask (B, S).

        Raises ExperimentError for a source that is longer than one of the parts can read.
        """
        # 1. Tell the features at the front from the rest.
        leads = self._leading_features(source, source_mask)  # (B, S)
        rest = source_mask & ~leads

        # 2. Let each part read its own, the features with <eos> in the place behind them.
        closes = rest & (rest.cumsum(1) == 1)
        closed = source.masked_fill(closes, EOS)
        of_features, features = self._read(self.features, closed, leads | closes)  # (B, S, F)
        of_source, encoded = self._read(self.source, source, rest)  # (B, S, D)

        # 3. Put the outputs where their tokens stand, and the states side by side.
        final = _beside(encoded.final, features.final)
        if not self.attended_whole:
            return Encoded(of_source, final, encoded.backward, attended=rest)
        outputs = torch.where(leads.unsqueeze(2), self.W_features(of_features), of_source)
        return Encoded(outputs, final, encoded.backward)

    def _leading_features(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """(B, S) bool: True at the features that stand before all other tokens."""
        known = self.is_feature[source] & source_mask
        passed = (known | (source == UNK) | ~source_mask).long().cumprod(1).bool()
        known = known & passed
        # An unknown token behind the last known feature belongs to the source.
        has_known_behind = _count_from_the_end(known) > 0
        # The last token is <eos>, unless somebody leaves it out; the source's part needs one.
        is_last = source_mask & (_count_from_the_end(source_mask) == 1)
        return passed & has_known_behind & source_mask & ~is_last

    def _read(self, part: Encoder, source: Tensor, real: Tensor) -> tuple[Tensor, Encoded]:
        """What a part makes of some tokens of each row, as a batch of their own.

        It is padded as other batches are, on the side that `padding` says.

        Args:
            real: (B, S) bool, True at these tokens.

        Returns:
            the outputs at the places of the tokens, (B, S, ...), zero elsewhere, and all that the
            part returned.
        """
        leads_with_pads = self.padding.encoder == "pre"
        order = (real if leads_with_pads else ~real).long().argsort(dim=1, stable=True)
        if self.padding.recurrence == "skip":  # else pads count, and all of them stay
            longest = int(real.sum(1).max())
            order = order[:, -longest:] if leads_with_pads else order[:, :longest]
        tokens = source.masked_fill(~real, PAD).gather(1, order)
        encoded = part(tokens, real.gather(1, order))

        outputs = encoded.outputs
        empty = outputs.new_zeros(*source.shape, outputs.shape[2])
        places = order.unsqueeze(2).expand_as(outputs)
        return empty.scatter(1, places, outputs), encoded


def _count_from_the_end(places: Tensor) -> Tensor:
    """(B, S) bool -> how many of a row are True there and behind."""
    return places.long().flip(1).cumsum(1).flip(1)


def _beside(source: RecurrentState, features: RecurrentState) -> RecurrentState:
    """The state of each layer, (L, B, ...), with the last one of the features beside it."""
    layers = len(source.hidden)
    summary = features.hidden[-1].expand(layers, -1, -1)
    hidden = torch.cat([source.hidden, summary], dim=2)
    if source.cell is None:
        return RecurrentState(hidden)
    if features.cell is not None:
        summary = features.cell[-1].expand(layers, -1, -1)
    return RecurrentState(hidden, torch.cat([source.cell, summary], dim=2))
