"""What every decoder is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor, nn

from attnlab.model.attention.attention import Attention
from attnlab.model.attention.mechanism import Mechanism
from attnlab.model.attention.memory import Memory
from attnlab.model.attention.multi_head import MultiHeadAttention
from attnlab.model.decoder.body import DecoderBody
from attnlab.model.decoder.decoder_state import DecoderState


@dataclass(frozen=True)
class StepOutput:
    """What one step hands on: what the readout reads, and where the attention looked.

    context is None where it does not go into the readout, attention_weights where nothing attends.
    """

    hidden: Tensor  # (B, H)
    context: Tensor | None  # (B, D)
    token: Tensor  # (B, E)
    attention_weights: Tensor | None  # (B, N, S)


class Decoder(nn.Module, ABC):
    """Writes the target a token at a time: a subclass says when the attention looks and where its context goes.

    carries_context: whether a step reads the context of the step before.
    reads_memory: False where all it knows of the source is its first state.
    """

    body: DecoderBody
    attention: Attention | MultiHeadAttention | None
    carries_context = False
    reads_memory = True

    @abstractmethod
    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[StepOutput, DecoderState]:
        """The embedded last token (B, E), the state before it and the memory -> output and state after."""


def look(
    attention: Attention | MultiHeadAttention, hidden: Tensor, state: DecoderState, memory: Memory
) -> tuple[Tensor, Tensor]:
    """Attend for one step: the query (B, H) -> context (B, D) and attention weights (B, N, S)."""
    context, weights = attention(hidden.unsqueeze(1), memory, state.position.unsqueeze(1), state.coverage)
    return context.squeeze(1), weights.squeeze(2)


def needs_attention(mechanism: Mechanism | None) -> Mechanism:
    """The mechanism; raises ValueError where there is none."""
    if mechanism is None:
        raise ValueError(
            "this decoder asks an attention at every step, but model.attention is null; choose a model/attention, or "
            "model/decoder=no_attention"
        )
    return mechanism
