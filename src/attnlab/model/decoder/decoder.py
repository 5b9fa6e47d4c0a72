"""What every decoder is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor, nn

from attnlab.model.attention.attention import Attention
from attnlab.model.decoder.memory import Memory
from attnlab.model.recurrent_state import RecurrentState, StateShape


@dataclass(frozen=True)
class StepOutput:
    """What one step hands on: the features that the readout reads, and where the attention looked (None without)."""

    features: Tensor  # (B, F)
    attention_weights: Tensor | None  # (B, S)


class Decoder(nn.Module, ABC):
    """Writes the target a token at a time.

    `readout` maps features (..., F) to (..., R), over which the model puts its output layer. It stands outside the
    step, so that training can apply it to all steps at once.
    """

    embedding: nn.Embedding
    attention: Attention | None
    readout: nn.Module
    readout_size: int
    state_shape: StateShape
    reads_memory = True  # False: all it knows of the source is its first state

    @abstractmethod
    def step(self, embedded: Tensor, state: RecurrentState, memory: Memory) -> tuple[StepOutput, RecurrentState]:
        """The embedded last token (B, E), the state before it and the memory -> output and state after."""
