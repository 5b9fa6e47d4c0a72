"""One decoder step with all of its numbers: a sheet of symbols (tasks/symbols/sheet.py).

The sheet computes each symbol by a plain formula from the model's weights, and the tests hold its
end, the logits and the next state, against `Seq2Seq.step`. Of a part from outside it takes what the
model itself computed, as far as it can be seen.

Axes: T target tokens, S source tokens, E embedding, F what is fed, H hidden, D context, R readout,
V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.batch import BOS
from attnlab.errors import ExperimentError
from attnlab.model.attention.attention import Past
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.attend_then_step import AttendThenStep
from attnlab.model.decoders.body import DecoderBody
from attnlab.model.decoders.conditional import Conditional
from attnlab.model.decoders.no_attention import NoAttention
from attnlab.model.decoders.step import DecoderState
from attnlab.model.decoders.step_then_attend import StepThenAttend
from attnlab.model.fast.decoder import FastDecoderBody
from attnlab.model.fast.output import FastLinearOutput
from attnlab.model.input_feeding import (
    AttentionalHiddenFeeding,
    ExpectedEmbeddingFeeding,
    SoftmaxOutputFeeding,
)
from attnlab.model.outputs.alignment_chain import AlignmentChain
from attnlab.model.outputs.hard_attention import AlignedReading, HardAttention
from attnlab.model.outputs.linear import LinearOutput
from attnlab.model.outputs.pointer_generator import PointerGenerator
from attnlab.model.outputs.pointer_network import PointerNetwork
from attnlab.model.readouts import (
    AttentionalReadout,
    MaxoutReadout,
    PlainReadout,
    StateReadout,
    TanhReadout,
)
from attnlab.model.seq2seq import Seq2Seq
from attnlab.tasks.edited_source import NO_EDIT, Edit, Source, heads_of
from attnlab.tasks.requests import NO_CHANGE
from attnlab.tasks.symbols.attention import Look, Masking, attend, part_of, shared_out
from attnlab.tasks.symbols.cells import Names, given_states
from attnlab.tasks.symbols.cells import step as step_cell
from attnlab.tasks.symbols.five_scores import five_scores_of_heads
from attnlab.tasks.symbols.pads import Recurrence, recurrence_at_pads
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol, Windows
from attnlab.tasks.translation.analysis import known_ids, read_target
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
    def body(self) -> DecoderBody:
        return self.model.decoder.body

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


@dataclass(frozen=True)
class Stepped:
    """What a decoder hands to its readout; the context is None where it does not go there."""

    hidden: Symbol
    context: Symbol | None
    token: Symbol


@torch.no_grad()
def step_numbers(
    translator: Translator,
    text: str,
    target: Sequence[int],
    step: int = 0,
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
    masking: Masking = "before",
    recurrence: Recurrence | None = None,
    windows: Windows | None = None,
) -> dict[str, Any]:
    """All numbers that one step of a given target computes.

    Args:
        step: from 0 on.
        masking: `before` hides pads by minus infinity before the softmax, as the model does;
            `after` puts zeros in the place of their weights after it, at this step alone.
        recurrence: whether the encoder's recurrence reads pads or skips them; None for what it was
            trained with.
        windows: where the windows of large matrices start.

    Returns:
        as `score`, and step, recurrence (what the encoder does at pads, None for an encoder from
        outside), `groups` and `symbols` as tasks/symbols/sheet.py describes them, and
        `scores`, of each head five scores on this step's query, as `five_scores` describes them;
        None for a decoder that asks no attention.

    Raises ExperimentError for a step behind the target, for a patch, for a model with a fault, and
    as `score`.
    """
    if getattr(translator.model, "fault", None) is not None:
        raise ExperimentError(
            "the formulas of a step are those of a right model, but this one was trained with a "
            "fault of docs/museum.md; look at it in the other views"
        )
    if intervene.patch is not None:
        raise ExperimentError(
            "intervene: the formulas of a step are those of the sentence's own keys, values and "
            "state; leave patch out"
        )
    source = Source.read(translator, text, edit, intervene)
    ids = known_ids(translator, target)
    if not 0 <= step < len(ids):
        raise ExperimentError(
            f"step must be at least 0 and below {len(ids)}, the tokens of this target, got {step}"
        )
    with recurrence_at_pads(translator.model.encoder, recurrence) as at_pads:
        answer = read_target(translator, source, ids, intervene)
        taken = take_step(translator, source, [BOS, *ids][: step + 1], intervene, masking)
    sheet = sheet_of(taken)
    return {
        **answer,
        "step": step,
        "recurrence": at_pads,
        **sheet.as_json(windows),
        "scores": scores_on_query(taken),
    }


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


def scores_on_query(taken: TakenStep) -> list[list[dict[str, Any]]] | None:
    """Five scores of each head on what it was asked with; None where nothing was asked."""
    module = taken.model.decoder.attention
    if module is None or taken.calls.attention is None:
        return None
    query = taken.calls.attention[0][0, 0]
    return five_scores_of_heads(module, query, taken.outputs, taken.memory)


def sheet_of(taken: TakenStep) -> Sheet:
    """The sheet of a step, sentence by sentence of its decoder."""
    sheet = Sheet()
    sheet.begin("before")
    token = embed(sheet, taken)
    decoder = taken.model.decoder
    is_known = type(taken.body) in (DecoderBody, FastDecoderBody) and type(decoder) in DECODERS
    step = DECODERS[type(decoder)] if is_known else unknown_decoder
    stepped = step(sheet, taken, token)
    output = read_out(sheet, taken, stepped)
    predict(sheet, taken, stepped, output)
    return sheet


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


def joined_axis(letter: str, parts: Sequence[Symbol]) -> Axis:
    """The axis of joined vectors; its places are called by the vectors and counted in each."""
    size = sum(part.axes[0].size for part in parts)
    if size > WHOLE_VOCABULARY:
        return Axis(letter, size)
    labels: list[str] = []
    for part in parts:
        counted = [f"{part.name[0]}{place + 1}" for place in range(part.axes[0].size)]
        labels += part.axes[0].labels or counted
    return Axis(letter, size, labels)


def attend_then_step(sheet: Sheet, taken: TakenStep, token: Symbol) -> Stepped:
    """Bahdanau's decoder."""
    before = given_states(sheet, taken.before.recurrent, "t−1")
    sheet.begin("ask_before")
    context = taken.attend(sheet, before.top)
    decoder = taken.model.decoder
    sheet.begin("step_context" if decoder.into_cell else "step")
    x = cell_input(sheet, taken, token, context if decoder.into_cell else None)
    after = step_cell(sheet, taken.body.cell, x, before, Names("s_t−1", "s_t"))
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
    after = step_cell(sheet, taken.body.cell, x, before, Names("s_t−1", "s_t"))
    sheet.begin("ask_after")
    context = taken.attend(sheet, after.top)
    return Stepped(after.top, context if decoder.into_readout else None, token)


def conditional(sheet: Sheet, taken: TakenStep, token: Symbol) -> Stepped:
    """The conditional decoder, which steps twice."""
    before = given_states(sheet, taken.before.recurrent, "t−1")
    decoder = taken.model.decoder
    sheet.begin("step")
    x = cell_input(sheet, taken, token, None)
    between = step_cell(sheet, taken.body.cell, x, before, Names("s_t−1", "s′_t"))
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
    after = step_cell(sheet, taken.body.cell, x, before, Names("s_t−1", "s_t"))
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


def read_out(sheet: Sheet, taken: TakenStep, stepped: Stepped) -> Symbol:
    """What the output layer reads."""
    readout = taken.body.readout
    sheet.begin("readout")
    joined = [stepped.hidden, stepped.context, stepped.token]
    known = [part for part in joined if part is not None]
    if type(readout) is StateReadout:
        return stepped.hidden
    if type(readout) is PlainReadout:
        return joined_parts(sheet, "r_t", "readout", known)
    if type(readout) is TanhReadout:
        v = joined_parts(sheet, "v_t", "joined", known)
        return bent(sheet, readout, v, ("W_r", "b_r", "r_t"), "readout")
    if type(readout) is AttentionalReadout:
        assert stepped.context is not None
        v = joined_parts(sheet, "v_t", "joined", [stepped.context, stepped.hidden])
        return bent(sheet, readout, v, ("W_c", "b_c", "s̃_t"), "attentional_hidden")
    if type(readout) is MaxoutReadout:
        return largest(sheet, readout, stepped)

    assert taken.calls.readout is not None
    values = taken.calls.readout[3][0]
    width = Axis("R", len(values))
    r = sheet.opaque("r_t", "readout", values, width, of=known, part=part_of(readout))
    sheet.formula("{} = readout(" + ", ".join(["{}"] * len(known)) + ")", r, *known)
    return r


def joined_parts(sheet: Sheet, name: str, about: str, parts: Sequence[Symbol]) -> Symbol:
    joined = sheet.compute(name, about, "concat", *parts, axes=[joined_axis("J", parts)])
    sheet.formula("{} = [" + "; ".join(["{}"] * len(parts)) + "]", joined, *parts)
    return joined


def bent(sheet: Sheet, readout: Any, v: Symbol, names: tuple[str, str, str], about: str) -> Symbol:
    """tanh(W v + b)."""
    of_weight, of_bias, of_result = names
    layer = readout.projection
    width = Axis("R", layer.weight.shape[0])
    W = sheet.weight(of_weight, "readout_W", layer.weight, width, v.axes[0])
    b = sheet.weight(of_bias, "bias", layer.bias, width)
    product = sheet.compute("W v", "readout_sum", "linear", W, v, b)
    result = sheet.compute(of_result, about, "tanh", product)
    sheet.formula("{} = {} {} + {}", product, W, v, b)
    sheet.formula("{} = tanh({})", result, product)
    return result


def largest(sheet: Sheet, readout: MaxoutReadout, stepped: Stepped) -> Symbol:
    """maxout(U s + V y + C c + b)."""
    pairs = Axis("2R", 2 * readout.size)
    layers: list[tuple[str, Any, Symbol]] = [
        ("U_r", readout.U, stepped.hidden),
        ("V_r", readout.V, stepped.token),
    ]
    if readout.C is not None:
        assert stepped.context is not None
        layers.append(("C_r", readout.C, stepped.context))
    products = []
    for name, layer, of in layers:
        W = sheet.weight(name, "readout_W", layer.weight, pairs, of.axes[0])
        product = sheet.compute(f"{name[0]} {of.name[0]}", "readout_product", "linear", W, of)
        sheet.formula("{} = {} {}", product, W, of)
        products.append(product)
    b = sheet.weight("b_r", "bias", readout.U.bias, pairs)
    terms = [*products, b]
    total = sheet.compute("v_t", "readout_sum", "add", *terms)
    r = sheet.compute("r_t", "readout", "maxout", total, axes=[Axis("R", readout.size)])
    sheet.formula("{} = " + " + ".join(["{}"] * len(terms)), total, *terms)
    sheet.formula("{} = maxout({})", r, total)
    return r


def predict(sheet: Sheet, taken: TakenStep, stepped: Stepped, read: Symbol) -> None:
    """The probabilities of the tokens, and what the next step is fed.

    read: what the output reads.
    """
    sheet.begin("output")
    output = taken.model.output
    if type(output) in (LinearOutput, FastLinearOutput):
        p = written(sheet, taken, read, ("p_t", "distribution"))
    elif type(output) is PointerGenerator:
        p = written_or_copied(sheet, taken, stepped, read)
    elif type(output) is PointerNetwork:
        p = copied(sheet, taken, ("p_t", "distribution"))
    elif isinstance(output, HardAttention):
        p = written_from_each(sheet, taken, stepped)
    else:
        p = sheet.opaque(
            "p_t",
            "distribution",
            taken.logits.softmax(-1),
            taken.vocabulary,
            of=[read],
            part=part_of(output),
        )
        sheet.formula("{} = output({})", p, read)

    feeding = taken.body.input_feeding
    if feeding is None:
        return
    sheet.begin("next")
    if type(feeding) is AttentionalHiddenFeeding:
        sheet.formula("{} → xₜ₊₁", read)
    elif type(feeding) is SoftmaxOutputFeeding:
        sheet.formula("{} → xₜ₊₁", p)
    elif type(feeding) is ExpectedEmbeddingFeeding:
        E = sheet.symbols["E"]
        expected = sheet.compute("ȳ_t", "fed_embedding", "weighted_sum", p, E)
        sheet.formula("{} = Σ {}(y) {}(y)", expected, p, E)
    elif feeding is not None:
        assert taken.after.fed is not None
        values = taken.after.fed[0]
        fed = sheet.opaque(
            "fed_t", "fed", values, Axis("F", len(values)), of=[read], part=part_of(feeding)
        )
        sheet.formula("{} = feed({})", fed, read)


def written(sheet: Sheet, taken: TakenStep, read: Symbol, names: tuple[str, str]) -> Symbol:
    """softmax(W r + b).

    names: of the result, and what it is about.
    """
    layer = taken.model.output.vocabulary
    assert layer is not None
    W = sheet.weight("W_y", "output_W", layer.weight, taken.vocabulary, read.axes[0])
    b = sheet.weight("b_y", "output_bias", layer.bias, taken.vocabulary)
    logits = sheet.compute("logits", "logits", "linear", W, read, b)
    p = sheet.compute(*names, "softmax", logits)
    sheet.formula("{} = {} {} + {}", logits, W, read, b)
    sheet.formula("{} = softmax({})", p, logits)
    return p


def written_from_each(sheet: Sheet, taken: TakenStep, stepped: Stepped) -> Symbol:
    """Hard attention: the distribution that each source token gives, by where the token is from."""
    # 1. The readout of each source token, with its value in place of the context.
    assert taken.memory.projected_values is not None
    state = [stepped.hidden.values, stepped.token.values]
    projected = taken.memory.projected_values[0]
    hidden, token = (projected.new_tensor(each) for each in state)
    values = taken.body.readout.at_each(hidden, projected, token)  # (S, R)
    source = Axis("S", len(taken.tokens), taken.tokens)
    readouts = sheet.given("R_t", "readout", values, source, Axis("R", values.shape[1]))
    layer = taken.model.output.vocabulary
    assert layer is not None
    W = sheet.weight("W_y", "output_W", layer.weight, taken.vocabulary, readouts.axes[1])
    b = sheet.weight("b_y", "output_bias", layer.bias, taken.vocabulary)
    logits = sheet.compute("logits", "logits", "linear", W, readouts, b)
    sheet.formula("{}ᵢ = readout(sₜ, hᵢ, yₜ₋₁)", readouts)
    sheet.formula("{}ᵢ = {} {}ᵢ + {}", logits, W, readouts, b)

    # 2. Where the next token comes from.
    alignment = where_from(sheet, taken, source)
    p = sheet.compute("p_t", "distribution", "mixture", alignment, logits)
    sheet.formula("{} = Σ {}ᵢ softmax({}ᵢ)", p, alignment, logits)
    return p


def where_from(sheet: Sheet, taken: TakenStep, source: Axis) -> Symbol:
    """Hard attention: the probability of each source token to be what the next token is from."""
    (weights,) = [each for each in sheet.symbols.values() if each.about == "weights"]
    output = taken.model.output
    if isinstance(output, AlignmentChain):
        reading = taken.after.last_reading
        assert isinstance(reading, AlignedReading)
        alignment = sheet.opaque(
            "π_t",
            "alignment",
            reading.log_prior[0].exp(),
            source,
            of=[weights],
            part=part_of(output),
        )
        sheet.formula("{} = p(aₜ | y₁ … yₜ₋₁), by {}", alignment, weights)
        return alignment

    intervention = taken.memory.intervention
    if intervention is None or not intervention.weights:
        return weights
    return shared_out(sheet, "π_t", "alignment", weights)  # those set by hand need not sum to 1


def written_or_copied(sheet: Sheet, taken: TakenStep, stepped: Stepped, read: Symbol) -> Symbol:
    """The pointer-generator: p_gen times the vocabulary's, and the rest by the attention."""
    output = taken.model.output
    assert isinstance(output, PointerGenerator)
    p_written = written(sheet, taken, read, ("p_vocab", "written"))

    known = [part for part in (stepped.context, stepped.hidden, stepped.token) if part is not None]
    joined = joined_parts(sheet, "u_t", "joined", known)
    one = Axis("1", 1)
    w = sheet.weight("w_g", "copy_gate_w", output.gate.weight, one, joined.axes[0])
    b = sheet.weight("b_g", "bias", output.gate.bias, one)
    product = sheet.compute("w u", "gate_sum", "linear", w, joined, b)
    p_gen = sheet.compute("p_gen", "copy_gate", "sigmoid", product)
    sheet.formula("{} = {} {} + {}", product, w, joined, b)
    sheet.formula("{} = σ({})", p_gen, product)

    p_copied = copied(sheet, taken, ("p_copy", "copied"))
    p = sheet.compute("p_t", "mixed", "blend", p_copied, p_gen, p_written)
    sheet.formula("{} = {} {} + (1 − p_gen) {}", p, p_gen, p_written, p_copied)
    return p


def copied(sheet: Sheet, taken: TakenStep, name: tuple[str, str]) -> Symbol:
    """The probability of each token by the attention weights of its places in the source.

    name: of the symbol, and what it is about.
    """
    assert taken.memory.source is not None
    alphas = [symbol for symbol in sheet.symbols.values() if symbol.about == "weights"]
    p_copied = sheet.compute(
        *name,
        "copied",
        *alphas,
        axes=[taken.vocabulary],
        tokens=taken.memory.source[0].tolist(),
        size=taken.vocabulary.size,
    )
    sheet.formula("{}(y) = Σ " + " ".join(["{}"] * len(alphas)) + ",  xᵢ = y", p_copied, *alphas)
    return p_copied
