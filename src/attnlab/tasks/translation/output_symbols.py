"""The symbols of an output: the probabilities of the tokens, and what the next step is fed.

Axes: S source tokens, R readout, V vocabulary.
"""

from __future__ import annotations

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
from attnlab.tasks.symbols.outside import part_of
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol
from attnlab.tasks.symbols.weights import shared_out
from attnlab.tasks.translation.decoder_symbols import Stepped
from attnlab.tasks.translation.joined_symbols import joined_parts
from attnlab.tasks.translation.taken_step import TakenStep


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
