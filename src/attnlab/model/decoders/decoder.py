"""Decoder: the base class of all decoders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from attnlab.model.attention.attention import Attention, MultiHeadAttention, Past
from attnlab.model.attention.mechanism import Mechanism
from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.body import TargetSide
from attnlab.model.decoders.step import DecoderState, StepOutput, Token
from attnlab.model.encoders.encoder import Encoded
from attnlab.model.histories.history import History
from attnlab.model.recurrence import RecurrentState

ContextT = TypeVar("ContextT", bound=str)


class Decoder(nn.Module, ABC, Generic[ContextT]):
    """Writes the target one token at a time; a subclass defines when the attention looks.

    `RecurrentDecoder` is the base of those that remember the target by cells. A subclass names the
    choices of `context` as its type argument, in `destinations` where each of them sends the
    context (into the cell, into the readout), and defines `step`. All else is optional.

    destinations: {choice of `context`: (goes into the cell, goes into the readout)}.
    longest_target: the name of its setting that limits the tokens of a target, `<bos>` included;
        None where any target can be read. The setting may be null, too, for no limit.
    attends: False for a decoder that has no attention, and refuses one.
    steps_twice: True for a decoder with a second cell, `second_cell`, which reads the context.
    attention: what it looks back with, and whose weights are shown; None without an attention.
    body: the embedding of the target, the readout and the input feeding.

    Args:
        context: where the context goes.
        mechanism: of its attention; None for none.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = (
        "mechanism",
        "readout",
        "input_feeding",
        "value_size",
        "target_vocabulary_size",
    )

    destinations: ClassVar[Mapping[str, tuple[bool, bool]]]
    longest_target: ClassVar[str | None] = None
    attends: ClassVar[bool] = True
    steps_twice: ClassVar[bool] = False

    attention: Attention | MultiHeadAttention | None
    body: TargetSide

    def __init__(self, context: ContextT, mechanism: Mechanism | None) -> None:
        super().__init__()
        if self.attends and mechanism is None:
            raise ValueError(
                "this decoder asks an attention at every step, but model.attention is null; choose "
                "a model/attention, or model/decoder=no_attention"
            )
        if mechanism is not None and not self.attends:
            raise ValueError(
                f"this decoder never looks back at the source, but model.attention is "
                f"{mechanism.score.target.__name__}; choose model/attention=none, or a "
                "model/decoder that attends"
            )
        self.into_cell, self.into_readout = self.destinations[context]

    @property
    def block_attentions(self) -> Sequence[Attention | MultiHeadAttention]:
        """Those of its blocks, in order, each of which reads its own of `Memory.of_blocks`.

        Empty for a decoder that has `attention` alone; in others it is one of these.
        """
        return ()

    @property
    def carries_context(self) -> bool:
        """Whether a step reads the context of the step before."""
        return False

    @property
    def reads_memory(self) -> bool:
        """False where the decoder knows the source by its first state only."""
        return True

    @property
    def history(self) -> History | None:
        """That of its attention, or of the first of its heads."""
        if self.attention is None or not self.attention.histories:
            return None
        return self.attention.histories[0]

    @property
    def has_history_loss(self) -> bool:
        """Whether the history of its attention has a loss."""
        return self.history is not None and self.history.loss_name is not None

    def history_loss(self, output: StepOutput, before: DecoderState) -> Tensor:
        """The loss (B,) of the attention's history, the mean over the heads, without its factor.

        Args:
            output: of a step.
            before: the state before that step.
        """
        assert self.attention is not None
        assert before.past is not None
        assert output.attention_weights is not None
        losses = [
            history.loss(past, weights)
            for history, past, weights in zip(
                self.attention.histories,
                before.past,
                output.attention_weights.unbind(1),
                strict=True,
            )
        ]
        return torch.stack(losses, dim=1).mean(1)

    @property
    def feeds_back(self) -> bool:
        """Whether a step reads what the attention or the readout of the step before computed."""
        reads_context = self.steps_twice or (self.attends and self.into_cell)
        return reads_context or self.body.input_feeding is not None or self.history is not None

    @property
    def reads_all_steps_at_once(self) -> bool:
        """Whether `all_steps` gives the result of a loop over `step`."""
        has_all_steps = type(self).all_steps is not Decoder.all_steps
        return has_all_steps and not self.feeds_back

    def first_state(self, recurrent: RecurrentState, encoded: Encoded) -> DecoderState:
        """Return the state before the first step, but for what the attention remembers.

        Args:
            recurrent: what the bridge made of the encoded source.
            encoded: the encoded source itself.
        """
        batch_size, _, width = encoded.outputs.shape
        zeros = encoded.outputs.new_zeros
        feeding = self.body.input_feeding
        context = zeros(batch_size, width) if self.carries_context else None
        fed = None if feeding is None else zeros(batch_size, feeding.size)
        position = zeros(batch_size, dtype=torch.long)
        return DecoderState(recurrent, position, context, fed)

    @abstractmethod
    def step(
        self, token: Token, state: DecoderState, memory: Memory
    ) -> tuple[StepOutput, DecoderState]:
        """Return the output of one step, and the state after it.

        B counts the rows of token and state. In a beam search they are the K hypotheses of each
        sentence, side by side, and the memory has a row for each sentence: `look` and
        `Memory.for_rows` bring both together.

        Args:
            token: the last token.
            state: the state before the step.
            memory: the encoded source.
        """

    def all_steps(
        self, tokens: Tensor, state: DecoderState, memory: Memory, positions: Tensor
    ) -> StepOutput:
        """The result of a loop over `step`, where nothing feeds back.

        Optional: a decoder without it takes its steps one by one.

        Args:
            tokens: (B, T, E), the last token of each step, embedded and after dropout.
            state: the state before the first step.
            positions: (B, T), of each step in the target.
        """
        raise NotImplementedError


def look(
    attention: Attention | MultiHeadAttention, hidden: Tensor, state: DecoderState, memory: Memory
) -> tuple[Tensor, Tensor, Past | None]:
    """Attend for one step, and remember what an attention with a history remembers.

    A row of the memory may serve K queries, which stand side by side: (B, H) is then read as
    (B / K, K, H).

    Args:
        hidden: the query (B, H).
        state: the state before the step.

    Returns:
        context (B, D), attention weights (B, N, S), and the `past` of the state after the step.
    """
    if state.past is None:
        queries = hidden.unflatten(0, (len(memory.lengths), -1))  # (B / K, K, H)
        positions = state.position.view(queries.shape[:2])
        context, weights = attention(queries, memory, positions)
        return context.flatten(0, 1), weights.transpose(1, 2).flatten(0, 1), None

    memory = memory.for_rows(len(hidden))  # each query has a past of its own
    context, weights, past = attention(
        hidden.unsqueeze(1), memory, state.position.unsqueeze(1), state.past
    )
    return context[:, 0], weights[:, :, 0], past
