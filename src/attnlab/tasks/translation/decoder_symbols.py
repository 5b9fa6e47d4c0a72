"""The symbols of a decoder step: what the cell reads, the cell, and the attention.

Axes: E embedding, F what is fed, H hidden, Q query, D context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from attnlab.model.decoders.attend_then_step import AttendThenStep
from attnlab.model.decoders.conditional import Conditional
from attnlab.model.decoders.no_attention import NoAttention
from attnlab.model.decoders.step_then_attend import StepThenAttend
from attnlab.model.input_feeding import (
    AttentionalHiddenFeeding,
    ExpectedEmbeddingFeeding,
    SoftmaxOutputFeeding,
)
from attnlab.tasks.symbols.cells import Names, given_states
from attnlab.tasks.symbols.cells import step as step_cell
from attnlab.tasks.symbols.outside import part_of
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol
from attnlab.tasks.translation.joined_symbols import joined_axis
from attnlab.tasks.translation.taken_step import TakenStep


@dataclass(frozen=True)
class Stepped:
    """What a decoder hands to its readout; the context is None where it does not go there."""

    hidden: Symbol
    context: Symbol | None
    token: Symbol


def embed(sheet: Sheet, taken: TakenStep) -> Symbol:
    """y_t−1, the embedding of the token that was written last."""
    weight = taken.body.embedding.weight
    width = Axis("E", weight.shape[1])
    E = sheet.weight("E", "embedding_matrix", weight, taken.vocabulary, width)
    y = sheet.compute("y_t−1", "last_token", "lookup", E, index=taken.token)
    token = (taken.vocabulary.labels or [])[taken.token]
    sheet.formula("{} = {}[" + token.replace("{}", "{ }") + "]", y, E)
    return y


def cell_input(sheet: Sheet, taken: TakenStep, token: Symbol, context: Symbol | None) -> Symbol:
    """x_t = [y_t−1; what is fed; context], or y_t−1 where nothing else goes into the cell."""
    parts = [token]
    fed = taken.before.fed
    if fed is not None:
        parts.append(fed_before(sheet, taken, fed[0]))
    if context is not None:
        parts.append(context)
    if len(parts) == 1:
        return token
    joined = sheet.compute("x_t", "cell_input", "concat", *parts, axes=[joined_axis("I", parts)])
    sheet.formula("{} = [" + "; ".join(["{}"] * len(parts)) + "]", joined, *parts)
    return joined


def fed_before(sheet: Sheet, taken: TakenStep, fed: Tensor) -> Symbol:
    """What the last step fed to this one; zeros at the first step."""
    feeding = taken.body.input_feeding
    name, about = FED.get(type(feeding), ("fed_t−1", "fed"))
    axis = Axis("F", len(fed))
    if type(feeding) is SoftmaxOutputFeeding:
        axis = taken.vocabulary
    return sheet.given(name, about, fed, axis)


def attend_then_step(sheet: Sheet, taken: TakenStep, token: Symbol) -> Stepped:
    """Bahdanau's decoder."""
    before = given_states(sheet, taken.before.recurrent, "t−1")
    sheet.begin("ask_before")
    context = taken.attend(sheet, before.top)
    decoder = taken.model.decoder
    sheet.begin("step_context" if decoder.into_cell else "step")
    x = cell_input(sheet, taken, token, context if decoder.into_cell else None)
    after = step_cell(sheet, taken.cell, x, before, Names("s_t−1", "s_t"))
    return Stepped(after.top, context if decoder.into_readout else None, token)


def step_then_attend(sheet: Sheet, taken: TakenStep, token: Symbol) -> Stepped:
    """Luong's decoder."""
    before = given_states(sheet, taken.before.recurrent, "t−1")
    decoder = taken.model.decoder
    last = None
    if taken.before.context is not None:
        values = taken.before.context[0]
        last = sheet.given("c_t−1", "context_before", values, Axis("D", len(values)))
    sheet.begin("step" if last is None else "step_last_context")
    x = cell_input(sheet, taken, token, last)
    after = step_cell(sheet, taken.cell, x, before, Names("s_t−1", "s_t"))
    sheet.begin("ask_after")
    context = taken.attend(sheet, after.top)
    return Stepped(after.top, context if decoder.into_readout else None, token)


def conditional(sheet: Sheet, taken: TakenStep, token: Symbol) -> Stepped:
    """The conditional decoder, which steps twice."""
    before = given_states(sheet, taken.before.recurrent, "t−1")
    decoder = taken.model.decoder
    assert isinstance(decoder, Conditional)
    sheet.begin("step")
    x = cell_input(sheet, taken, token, None)
    between = step_cell(sheet, taken.cell, x, before, Names("s_t−1", "s′_t"))
    sheet.begin("ask_between")
    context = taken.attend(sheet, between.top)
    sheet.begin("step_again")
    names = Names("s′_t", "s_t", prime="′")
    after = step_cell(sheet, decoder.second_cell, context, between, names)
    return Stepped(after.top, context if decoder.into_readout else None, token)


def no_attention(sheet: Sheet, taken: TakenStep, token: Symbol) -> Stepped:
    """The decoder that knows the source by one vector."""
    before = given_states(sheet, taken.before.recurrent, "t−1")
    context = None
    if taken.model.decoder.into_cell:
        summary = taken.memory.summary[0]
        context = sheet.given("c", "one_context", summary, Axis("D", len(summary)))
    sheet.begin("step" if context is None else "step_one_context")
    x = cell_input(sheet, taken, token, context)
    after = step_cell(sheet, taken.cell, x, before, Names("s_t−1", "s_t"))
    return Stepped(after.top, context, token)


def unknown_decoder(sheet: Sheet, taken: TakenStep, token: Symbol) -> Stepped:
    """A decoder from outside: what its attention was asked, and what its readout was given."""
    before = given_states(sheet, taken.before.recurrent, "t−1")
    part = part_of(taken.model.decoder)
    known = before.hidden[-1:]  # none of a decoder without a recurrent state
    sheet.begin("unknown_decoder")
    found = None
    if taken.calls.attention is not None:
        values = taken.calls.attention[0][0, 0]
        width = Axis("Q", len(values))
        of = [*known, token]
        query = sheet.opaque("q_t", "query", values, width, of=of, part=part)
        found = taken.attend(sheet, query)

    assert taken.calls.readout is not None
    hidden, context, _, _ = taken.calls.readout
    of = [*known, token, *([] if found is None else [found])]
    s = sheet.opaque("s_t", "state", hidden[0], Axis("H", hidden.shape[1]), of=of, part=part)
    sheet.formula("{} = step(" + ", ".join(["{}"] * len(of)) + ")", s, *of)
    if context is None:
        return Stepped(s, None, token)
    handed = sheet.opaque(
        "c̄_t", "handed_context", context[0], Axis("D", context.shape[1]), of=of, part=part
    )
    return Stepped(s, handed, token)


DECODERS: Mapping[type, Callable[[Sheet, TakenStep, Symbol], Stepped]] = {
    AttendThenStep: attend_then_step,
    StepThenAttend: step_then_attend,
    Conditional: conditional,
    NoAttention: no_attention,
}


FED: Mapping[type, tuple[str, str]] = {
    AttentionalHiddenFeeding: ("s̃_t−1", "fed_hidden"),
    SoftmaxOutputFeeding: ("p_t−1", "fed_softmax"),
    ExpectedEmbeddingFeeding: ("ȳ_t−1", "fed_embedding"),
}
