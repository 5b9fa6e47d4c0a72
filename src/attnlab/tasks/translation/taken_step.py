"""A decoder step as the model itself took it, and what its modules were given meanwhile.

Axes: B batch, of one; T target tokens, S source tokens, Q query, D context, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.model.attention.attention import Past
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.body import DecoderBody, TargetSide
from attnlab.model.decoders.cells import StackedCell
from attnlab.model.decoders.step import DecoderState
from attnlab.model.seq2seq import Seq2Seq
from attnlab.tasks.edited_source import Source, heads_of
from attnlab.tasks.symbols.attention import attend
from attnlab.tasks.symbols.look import Look, Masking
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol
from attnlab.tasks.translation.translator import Translator

WHOLE_VOCABULARY = 64  # tokens of a vocabulary that is shown whole
LIKELIEST = 12  # tokens that are shown of a larger one, and of the step before it as many


@dataclass
class Calls:
    """What the modules of a decoder were given and returned during one step.

    attention: query (B, T, Q) and context (B, T, D).
    weights: of each head (B, 1, T, S).
    readout: hidden state, context and token, and the readout.
    """

    attention: tuple[Tensor, Tensor] | None = None
    weights: dict[nn.Module, Tensor] = field(default_factory=dict)
    readout: tuple[Tensor, Tensor | None, Tensor, Tensor] | None = None


@dataclass(frozen=True)
class TakenStep:
    """A step as the model itself took it.

    token: the last one, which it reads.
    outputs: the encoder's (S, D).
    tokens: of the source, S with the pads.
    vocabulary: the axis of the target's tokens.
    pasts: what each head remembered before each step up to this one; empty without a history.
    logits: (V,).
    """

    model: Seq2Seq
    token: int
    before: DecoderState
    after: DecoderState
    memory: Memory
    outputs: Tensor
    tokens: Sequence[str]
    vocabulary: Axis
    pasts: Sequence[Past]
    logits: Tensor
    calls: Calls
    masking: Masking

    @property
    def body(self) -> TargetSide:
        return self.model.decoder.body

    @property
    def cell(self) -> StackedCell:
        """The cells of a recurrent decoder."""
        assert isinstance(self.body, DecoderBody)
        return self.body.cell

    def attend(self, sheet: Sheet, query: Symbol) -> Symbol:
        """The symbols of the attention with this query; returns the context."""
        attention = self.model.decoder.attention
        assert attention is not None
        assert self.calls.attention is not None
        heads = heads_of(attention)
        past = None
        if self.pasts:
            past = [[step[number] for step in self.pasts] for number in range(len(heads))]
        look = Look(
            memory=self.memory,
            position=int(self.before.position[0]),
            weights=[self.calls.weights[head][0, 0, 0] for head in heads],
            context=self.calls.attention[1][0, 0],
            tokens=self.tokens,
            past=past,
        )
        return attend(sheet, attention, query, self.outputs, look, self.masking)


@torch.no_grad()
def take_step(
    translator: Translator,
    source: Source,
    read: Sequence[int],
    intervene: Intervention,
    masking: Masking,
) -> TakenStep:
    """Let the model read some target tokens, and listen to it at the last of them."""
    model = translator.model
    batch = source.batch([])
    memory, state = model.encode(batch.source, batch.source_mask, intervene)
    outputs = model.encoder(batch.source, batch.source_mask).outputs[0]

    pasts: list[Past] = []
    logits = None
    tokens = batch.source.new_tensor(read).split(1)  # (1,) each
    for token in tokens[:-1]:
        if state.past is not None:
            pasts.append(state.past)
        logits, state, _ = model.step(token, state, memory)
    if state.past is not None:
        pasts.append(state.past)
    with listening(model) as calls:
        own_logits, after, _ = model.step(tokens[-1], state, memory)

    shown = shown_tokens(read[-1], own_logits, logits)
    labels = translator.target_tokenizer.tokens(range(own_logits.shape[1]))
    return TakenStep(
        model=model,
        token=read[-1],
        before=state,
        after=after,
        memory=memory,
        outputs=outputs,
        tokens=source.tokens,
        vocabulary=Axis("V", own_logits.shape[1], labels, shown),
        pasts=pasts,
        logits=own_logits[0],
        calls=calls,
        masking=masking,
    )


def shown_tokens(token: int, logits: Tensor, before: Tensor | None) -> list[int] | None:
    """Tokens of a large vocabulary that are worth showing: the likeliest, and the one that is read.

    before: the logits of the step before.
    """
    if logits.shape[1] <= WHOLE_VOCABULARY:
        return None
    shown = {token, *logits[0].topk(LIKELIEST).indices.tolist()}
    if before is not None:
        shown |= set(before[0].topk(LIKELIEST).indices.tolist())
    return sorted(shown)


@contextmanager
def listening(model: Seq2Seq) -> Iterator[Calls]:
    """Record what attention, heads and readout compute meanwhile."""
    calls = Calls()
    attention = model.decoder.attention

    def record_attention(module: nn.Module, given: tuple[Any, ...], found: Any) -> None:
        calls.attention = (given[0], found[0])

    def record_head(module: nn.Module, given: tuple[Any, ...], found: Any) -> None:
        calls.weights[module] = found[1]

    def record_readout(module: nn.Module, given: tuple[Any, ...], found: Tensor) -> None:
        hidden, context, token = given
        calls.readout = (hidden, context, token, found)

    hooks = [model.decoder.body.readout.register_forward_hook(record_readout)]
    if attention is not None:
        hooks.append(attention.register_forward_hook(record_attention))
        for head in heads_of(attention):
            hooks.append(head.register_forward_hook(record_head))
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
