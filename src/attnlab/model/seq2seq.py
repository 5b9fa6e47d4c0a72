"""Encode, unroll over the target, project."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnlab.batch import Batch, Padding
from attnlab.composition.part import Part
from attnlab.model.attention.score import Score
from attnlab.model.bridge.bridge import Bridge
from attnlab.model.decoder.decoder import Decoder, StepOutput
from attnlab.model.decoder.memory import Memory
from attnlab.model.encoder import Encoder
from attnlab.model.recurrent_state import RecurrentState
from attnlab.model.shift import inverse, pads_last, reorder


@dataclass(frozen=True)
class Unrolled:
    """A pass over the target: what the output layer reads, and where the attention looked (None without)."""

    readout: Tensor  # (B, T, R)
    attention_weights: Tensor | None  # (B, T, S)


class Seq2Seq(nn.Module):
    """An encoder, a bridge, and a decoder with its attention; None for a decoder without.

    `step` is the one definition of the model; `forward` is a loop over it.
    """

    def __init__(
        self,
        encoder: Part[Encoder],
        bridge: Part[Bridge],
        attention: Part[Score] | None,
        decoder: Part[Decoder],
        *,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        padding: Padding,
    ) -> None:
        super().__init__()
        self.padding = padding
        self.encoder: Encoder = encoder(source_vocabulary_size=source_vocabulary_size, padding=padding)
        self.decoder: Decoder = decoder(
            score=attention,
            value_size=self.encoder.output_size,
            target_vocabulary_size=target_vocabulary_size,
        )
        self.bridge: Bridge = bridge(encoder_shape=self.encoder.state_shape, decoder_shape=self.decoder.state_shape)
        if not (self.bridge.tells_source or self.decoder.reads_memory):
            raise ValueError(
                "bridge hands nothing of the source to a decoder that never looks at it; choose model/bridge=linear, "
                "model.decoder.context=every_step, or a model/attention and a model/decoder that attends"
            )
        self.output = nn.Linear(self.decoder.readout_size, target_vocabulary_size)

    def encode(self, source: Tensor, source_mask: Tensor) -> tuple[Memory, RecurrentState]:
        """source (B, S) and its mask -> the memory that the decoder reads, and its first state."""
        values, final = self.encoder(source, source_mask)  # (B, S, D)
        attention = self.decoder.attention
        memory = Memory(
            values=values,
            summary=final.hidden[-1],
            keys=None if attention is None else attention.score.project_keys(values),
            mask=source_mask if self.padding.attention_masked else None,
        )
        return memory, self.bridge(final)

    def step(
        self, tokens: Tensor, state: RecurrentState, memory: Memory
    ) -> tuple[Tensor, RecurrentState, Tensor | None]:
        """The last tokens (B,) -> logits (B, V) of the next, the state after, attention weights (B, S)."""
        output, state = self.decoder.step(self.decoder.embedding(tokens), state, memory)
        return self.output(self.decoder.readout(output.features)), state, output.attention_weights

    def forward(self, batch: Batch, feed_reference: Tensor | None = None) -> Unrolled:
        """Read the target as reference (teacher forcing), or in part as the model's own last guess.

        Args:
            batch: the sentence pairs.
            feed_reference: (B, T) bool; where False, position t is fed the argmax of step t-1 in place of the
                reference. None feeds the reference everywhere.
        """
        memory, state = self.encode(batch.source, batch.source_mask)
        inputs, mask = batch.target_input, batch.target_mask
        skip_leading_pads = self.padding.decoder == "pre" and self.padding.recurrence == "skip"
        order = pads_last(mask) if skip_leading_pads else None
        if order is not None:
            inputs, mask = reorder(inputs, order), reorder(mask, order)
            feed_reference = None if feed_reference is None else reorder(feed_reference, order)

        features, weights = self._unroll(inputs, mask, feed_reference, state, memory)
        readout = self.decoder.readout(features)  # (B, T, R), all steps at once
        if order is not None:
            readout = reorder(readout, inverse(order))
            weights = None if weights is None else reorder(weights, inverse(order))
        return Unrolled(readout, weights)

    def _unroll(
        self,
        inputs: Tensor,
        mask: Tensor,
        feed_reference: Tensor | None,
        state: RecurrentState,
        memory: Memory,
    ) -> tuple[Tensor, Tensor | None]:
        """The loop over the step: features (B, T, F) and attention weights (B, T, S)."""
        embedded = self.decoder.embedding(inputs)  # (B, T, E)
        outputs: list[StepOutput] = []
        for t in range(inputs.shape[1]):
            last = embedded[:, t]
            if feed_reference is not None and t > 0:
                # A guess follows a real token only: pads and <bos> are always fed as they stand.
                use_guess = ~feed_reference[:, t] & mask[:, t - 1] & mask[:, t]
                if use_guess.any():
                    guess = self.output(self.decoder.readout(outputs[-1].features)).argmax(-1)
                    last = torch.where(use_guess.unsqueeze(1), self.decoder.embedding(guess), last)
            output, state = self.decoder.step(last, state, memory)
            outputs.append(output)
        features = torch.stack([output.features for output in outputs], dim=1)
        weights = [output.attention_weights for output in outputs if output.attention_weights is not None]
        return features, torch.stack(weights, dim=1) if weights else None
