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

    context is None where it does not go into the readout, attention_weights where nothing attends. All steps at once
    have a further axis T, (B, T, H), and (B, N, T, S) of the weights.
    """

    hidden: Tensor  # (B, H)
    context: Tensor | None  # (B, D)
    token: Tensor  # (B, E)
    attention_weights: Tensor | None  # (B, N, S)

    def select(self, rows: Tensor) -> StepOutput:
        """The output of some rows of the batch."""
        return StepOutput(
            self.hidden[rows],
            None if self.context is None else self.context[rows],
            self.token[rows],
            None if self.attention_weights is None else self.attention_weights[rows],
        )


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

    @property
    @abstractmethod
    def feeds_back(self) -> bool:
        """Whether a step reads what the attention or the readout of a step before it found."""

    @abstractmethod
    def all_steps(self, embedded: Tensor, state: DecoderState, memory: Memory, positions: Tensor) -> StepOutput:
        """As a loop over `step`, for a decoder in which nothing feeds back.

        Args:
            embedded: (B, T, E), the last token of each step.
            state: the state before the first step.
            positions: (B, T), of each step in the target.
        """


def look(
    attention: Attention | MultiHeadAttention, hidden: Tensor, state: DecoderState, memory: Memory
) -> tuple[Tensor, Tensor]:
    """Attend for one step: the query (B, H) -> context (B, D) and attention weights (B, N, S).

    A row of the memory may serve several queries, which stand side by side: (B, H) is then as good as (B / T, T, H).
    """
    if state.coverage is not None:
        memory = memory.for_rows(len(hidden))  # what each has seen changes the keys
    queries = hidden.unflatten(0, (len(memory.lengths), -1))  # (B / T, T, H)
    context, weights = attention(queries, memory, state.position.view(queries.shape[:2]), state.coverage)
    return context.flatten(0, 1), weights.transpose(1, 2).flatten(0, 1)


def remembers(body: DecoderBody, attention: Attention | MultiHeadAttention | None) -> bool:
    """Whether something but the recurrent state goes from step to step, wherever the context goes."""
    return body.input_feeding is not None or (attention is not None and attention.coverage is not None)


def needs_attention(mechanism: Mechanism | None) -> Mechanism:
    """The mechanism; raises ValueError where there is none."""
    if mechanism is None:
        raise ValueError(
            "this decoder asks an attention at every step, but model.attention is null; choose a model/attention, or "
            "model/decoder=no_attention"
        )
    return mechanism
