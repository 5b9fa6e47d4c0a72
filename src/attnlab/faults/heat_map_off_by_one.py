"""A heat map whose rows are those of the step before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from attnlab.batch import Batch
from attnlab.faults.fault import Fault
from attnlab.faults.faulty_model import FaultySeq2Seq, heads_of
from attnlab.model.decoders.step import DecoderState
from attnlab.model.seq2seq import Seq2Seq
from attnlab.model.unrolled import Unrolled


@dataclass(frozen=True)
class HeatMapOffByOne(Fault):
    """Each target token is shown with the weights of the step before the one that wrote it.

    Wrong: the row of y_t is w_t-1, and that of y_1 is zero.
    Right: the row of y_t is w_t, with which y_t was written.

    What the model reads and writes is right; what it shows is not: heat maps, alignments, a loss on
    attention weights, and the source words that replace unknown ones. Of OpenNMT-tf, pull requests
    304 and 447, which gave `a b c` the rows of `<s> a b`.
    """

    does: ClassVar[str] = (
        "The heat map's row of a target token is that of the step before: `a b c` has the rows of "
        "`<s> a b`."
    )
    made_by: ClassVar[str] = (
        "[OpenNMT-tf 304](https://github.com/OpenNMT/OpenNMT-tf/pull/304), and again "
        "[447](https://github.com/OpenNMT/OpenNMT-tf/pull/447)"
    )
    noticed: ClassVar[str] = (
        "A copying model's diagonal starts one row too low; alignments improve when they are "
        "shifted."
    )

    def check(self, model: Seq2Seq) -> None:
        if not heads_of(model):
            raise self.refusal("needs an attention to show; choose a model/attention")
        if model.decoder.body.state_shape.layers == 0:
            raise self.refusal(
                "is about a decoder that takes its steps one by one; choose a recurrent "
                "model/decoder"
            )
        if model.output.has_posterior:
            raise self.refusal(
                f"is about attention weights, in whose place {type(model.output).__name__} shows "
                "where each token comes from; choose model/output=linear"
            )

    def change_model(self, model: Seq2Seq) -> None:
        model.__class__ = ShowingTheStepBefore


@dataclass(frozen=True)
class StateWithWeights(DecoderState):
    """A decoder's state, with the attention weights of the step before."""

    shown: Tensor | None = None  # (B, S)


class ShowingTheStepBefore(FaultySeq2Seq):
    """A model that returns the attention weights one step late."""

    def encode(self, source: Tensor, source_mask: Tensor, *others: Any, **named: Any) -> Any:
        memory, state = super().encode(source, source_mask, *others, **named)
        nothing = torch.zeros(source.shape, device=source.device)
        return memory, StateWithWeights(**vars(state), shown=nothing)

    def step(
        self, tokens: Tensor, state: DecoderState, memory: Any
    ) -> tuple[Tensor, DecoderState, Tensor | None]:
        assert isinstance(state, StateWithWeights)
        logits, after, weights = super().step(tokens, state, memory)
        assert weights is not None
        assert state.shown is not None
        assert isinstance(after, StateWithWeights)
        return logits, replace(after, shown=weights), state.shown.to(weights.dtype)

    def forward(self, batch: Batch, *others: Any, **named: Any) -> Unrolled:
        unrolled = super().forward(batch, *others, **named)
        weights = unrolled.attention_weights  # (B, T, S)
        assert weights is not None
        before = torch.cat([torch.zeros_like(weights[:, :1]), weights[:, :-1]], dim=1)
        # Where pads stand in front of a target, its first token has no row of a step before.
        is_first = batch.target_mask & (batch.target_mask.cumsum(1) == 1)
        return replace(unrolled, attention_weights=before.masked_fill(is_first.unsqueeze(2), 0))
