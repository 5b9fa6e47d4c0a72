"""The Transformer's decoder, which looks at the source with any attention of the laboratory.

Axes: B batch, T target length, S source length, E width of everything, N heads of the
    self-attention, d width of one of them, t steps so far, L blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.config.part import Part
from attnlab.model.attention.attention import Attention, MultiHeadAttention
from attnlab.model.attention.mechanism import Mechanism
from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.body import TargetSide
from attnlab.model.decoders.decoder import Decoder, look
from attnlab.model.decoders.step import DecoderState, StepOutput, Token
from attnlab.model.dropout import Rate, dropout_of_words
from attnlab.model.encoders.encoder import Encoded
from attnlab.model.input_feeding import InputFeeding
from attnlab.model.readouts import Readout
from attnlab.model.recurrence import RecurrentState, StateShape
from attnlab.model.transformer.layers import (
    FeedForward,
    NormPlace,
    Residual,
    SelfAttention,
    causal,
    draw_scaled,
    last_norm,
)
from attnlab.model.transformer.positions import PositionKind, Turn, positions_of

AnyAttention = Attention | MultiHeadAttention
# An attention, its queries (B, T, E) and its memory -> context (B, T, D) and weights.
Ask = Callable[[AnyAttention, Tensor, Memory], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class TransformerState(DecoderState):
    """What the self-attention of each block has seen: the keys and values of all steps so far."""

    keys: Tensor | None = None  # (B, L, N, t, d)
    values: Tensor | None = None  # (B, L, N, t, d)


@dataclass(frozen=True)
class Found:
    """What a block found."""

    x: Tensor  # (B, T, E)
    keys: Tensor  # (B, N, t, d), those before and those of its own steps
    values: Tensor  # (B, N, t, d)
    context: Tensor
    weights: Tensor


class DecoderBlock(nn.Module):
    """Self-attention, attention to the source, and a feed-forward network.

    Vaswani et al. 2017, section 3.1. The context passes a linear map to the block's width, where
    several heads have none that leads there.
    """

    def __init__(
        self,
        self_attention: SelfAttention,
        attention: AnyAttention,
        size: int,
        value_size: int,
        feed_forward_size: int,
        norm: NormPlace,
        dropout: float,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.around_self_attention = Residual(size, norm, dropout)
        self.attention = attention
        is_mapped = isinstance(attention, MultiHeadAttention) and value_size == size
        self.into_width = nn.Identity() if is_mapped else nn.Linear(value_size, size, bias=False)
        self.around_attention = Residual(size, norm, dropout)
        self.feed_forward = FeedForward(size, feed_forward_size)
        self.around_feed_forward = Residual(size, norm, dropout)

    def forward(
        self,
        x: Tensor,
        turn: Turn,
        before: tuple[Tensor, Tensor] | None,
        memory: Memory,
        ask: Ask,
    ) -> Found:
        """One block, for x (B, T, E).

        Args:
            turn: as for `SelfAttention.project`.
            before: keys and values of earlier steps, which one step (T = 1) sees; None where x has
                all steps, each of which sees itself and those before it.
            memory: of the source, for this block.
            ask: how its attention is asked.
        """
        # 1. Look at the target so far.
        entered = self.around_self_attention.enter(x)
        query, keys, values = self.self_attention.project(entered, turn)
        seen = None
        if before is None:
            seen = causal(x.shape[1], x.device)
        else:
            keys = torch.cat([before[0], keys], dim=2)
            values = torch.cat([before[1], values], dim=2)
        found = self.self_attention.attend(query, keys, values, seen)
        x = self.around_self_attention.leave(x, found)

        # 2. Look at the source.
        context, weights = ask(self.attention, self.around_attention.enter(x), memory)
        x = self.around_attention.leave(x, self.into_width(context))

        # 3. Pass each token through the feed-forward network.
        found = self.feed_forward(self.around_feed_forward.enter(x))
        x = self.around_feed_forward.leave(x, found)
        return Found(x, keys, values, context, weights)


class TransformerDecoder(Decoder[Literal["blocks", "blocks_and_readout"]]):
    """Blocks of self-attention and attention (Vaswani et al. 2017, section 3.1).

    The attention to the source is what the choices of score, weights, scope and heads make of it,
    one of its own in each block. Vaswani et al. have `model/attention=scaled_dot` and
    `model/heads=multi`.

    Args:
        embedding_size: width E of embeddings and blocks (there d_model).
        blocks: their number L.
        self_attention_heads: N of each self-attention, which share the width.
        feed_forward_size: inner width of the feed-forward networks.
        positions: `sinusoidal`, `learned` or `rotary`, as for the encoder.
        longest: the number of learned positions, `<bos>` included; None for the others.
        norm: whether a layer norm stands `before` or `after` each sublayer.
        word_dropout: of whole words, their embeddings.
        dropout: on the embeddings.
        block_dropout: on what each sublayer adds.
        context: where the context goes: into the `blocks`, or, that of the alignment block, into
            the readout as well (`blocks_and_readout`).
        alignment_block: the block, counted from 1, whose attention weights are shown, trained by
            losses on the attention, and copied by (Garg et al. 2019 take the last but one).
    """

    destinations: ClassVar = {"blocks": (False, False), "blocks_and_readout": (False, True)}
    longest_target = "longest"

    def __init__(
        self,
        embedding_size: PositiveInt,
        blocks: PositiveInt,
        self_attention_heads: PositiveInt,
        feed_forward_size: PositiveInt,
        positions: PositionKind,
        longest: PositiveInt | None,
        norm: NormPlace,
        word_dropout: Rate,
        dropout: Rate,
        block_dropout: Rate,
        context: Literal["blocks", "blocks_and_readout"],
        alignment_block: PositiveInt,
        *,
        mechanism: Mechanism | None,
        readout: Part[Readout],
        input_feeding: Part[InputFeeding] | None,
        value_size: int,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__(context, mechanism)
        assert mechanism is not None
        _check_choices(mechanism, input_feeding, blocks, alignment_block)

        self.scale = math.sqrt(embedding_size)
        self.positions = positions_of(
            positions, embedding_size, self_attention_heads, longest, "model.decoder.longest"
        )
        self.body = TargetSide(
            embedding_size,
            embedding_size,
            dropout_of_words(word_dropout, dropout),
            into_readout=value_size if self.into_readout else 0,
            readout=readout,
            input_feeding=None,
            target_vocabulary_size=target_vocabulary_size,
        )
        self.body.state_shape = StateShape(layers=0, size=embedding_size, has_cell=False)
        draw_scaled(self.body.embedding)
        built = [
            DecoderBlock(
                SelfAttention(embedding_size, self_attention_heads),
                mechanism.build(embedding_size, value_size),
                embedding_size,
                value_size,
                feed_forward_size,
                norm,
                block_dropout,
            )
            for _ in range(blocks)
        ]
        self.blocks: Sequence[DecoderBlock] = nn.ModuleList(built)  # type: ignore[assignment]
        self.norm = last_norm(embedding_size, norm)
        self.alignment_block = alignment_block

    @property
    def attention(self) -> AnyAttention:  # type: ignore[override]  # elsewhere an attribute
        """That of the alignment block."""
        return self.block_attentions[self.alignment_block - 1]

    @property
    def block_attentions(self) -> Sequence[AnyAttention]:
        return [block.attention for block in self.blocks]

    def first_state(self, recurrent: RecurrentState, encoded: Encoded) -> TransformerState:
        first = super().first_state(recurrent, encoded)
        attention = self.blocks[0].self_attention
        nothing = encoded.outputs.new_zeros(
            len(encoded.outputs), len(self.blocks), attention.heads, 0, attention.head_size
        )
        return TransformerState(first.recurrent, first.position, keys=nothing, values=nothing)

    def step(
        self, token: Token, state: DecoderState, memory: Memory
    ) -> tuple[StepOutput, DecoderState]:
        assert isinstance(state, TransformerState)
        assert state.keys is not None
        assert state.values is not None

        def ask(attention: AnyAttention, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
            context, weights, _ = look(attention, query[:, 0], state, memory)
            return context.unsqueeze(1), weights

        # 1. Embed the last token at its position.
        positions = state.position.unsqueeze(1)
        x = self.positions.added(self.scale * token.embedded.unsqueeze(1), positions)
        # 2. Block by block, look at the target so far and at the source.
        turn = self.positions.turn(positions, x.dtype)
        found = []
        for number, block in enumerate(self.blocks):
            before = state.keys[:, number], state.values[:, number]
            found.append(block(x, turn, before, memory.of_blocks[number], ask))
            x = found[-1].x
        # 3. Hand the result to the readout, and remember what the self-attention saw.
        shown = found[self.alignment_block - 1]
        context = shown.context[:, 0] if self.into_readout else None
        output = StepOutput(self.norm(x)[:, 0], context, token.embedded, shown.weights)
        after = replace(
            state,
            position=state.position + 1,
            keys=torch.stack([each.keys for each in found], dim=1),
            values=torch.stack([each.values for each in found], dim=1),
        )
        return output, after

    def all_steps(
        self, tokens: Tensor, state: DecoderState, memory: Memory, positions: Tensor
    ) -> StepOutput:
        def ask(attention: AnyAttention, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
            return attention(query, memory, positions)

        x = self.positions.added(self.scale * tokens, positions)
        turn = self.positions.turn(positions, x.dtype)
        found = []
        for block, own_memory in zip(self.blocks, memory.of_blocks, strict=True):
            found.append(block(x, turn, None, own_memory, ask))
            x = found[-1].x
        shown = found[self.alignment_block - 1]
        context = shown.context if self.into_readout else None
        return StepOutput(self.norm(x), context, tokens, shown.weights)


def _check_choices(
    mechanism: Mechanism,
    input_feeding: Part[InputFeeding] | None,
    blocks: int,
    alignment_block: int,
) -> None:
    """Raise ValueError where choices do not go together with a Transformer's decoder."""
    if mechanism.history is not None:
        raise ValueError(
            f"model/history ({mechanism.history.target.__name__}) remembers from step to step, but "
            "a Transformer's decoder takes all steps of a training at once; choose "
            "model/history=none, or a recurrent model/decoder"
        )
    if input_feeding is not None:
        raise ValueError(
            f"model/input_feeding ({input_feeding.target.__name__}) feeds what a step found to the "
            "next, but a Transformer's decoder takes all steps of a training at once; choose "
            "model/input_feeding=none, or a recurrent model/decoder"
        )
    if alignment_block > blocks:
        raise ValueError(
            f"alignment_block is {alignment_block}, but there are {blocks} blocks; choose 1 to "
            f"{blocks}"
        )
