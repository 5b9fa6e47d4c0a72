"""The formulas of a gate behind the context."""

from __future__ import annotations

from typing import Any

from attnlab.model.gates import ElementwiseGate, PerHeadGate
from attnlab.tasks.symbols.outside import part_of, run
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol


def gated(
    sheet: Sheet,
    gate: Any,
    query: Symbol,
    context: Symbol,
    names: tuple[str, str],
    heads: int = 1,
) -> Symbol:
    """The context behind a gate.

    names: of the result, and what it is about.
    """
    if type(gate) not in (ElementwiseGate, PerHeadGate):
        found = run(gate, query.values[None, None], context.values[None, None])[0, 0]
        behind = sheet.opaque(*names, found, *context.axes, of=[query, context], part=part_of(gate))
        sheet.formula("{} = gate({}, {})", behind, query, context)
        return behind

    weight, bias = gate.W.weight, gate.W.bias
    axis = context.axes[0]
    if type(gate) is PerHeadGate and heads == 1:
        axis = Axis("N", 1)
    elif type(gate) is PerHeadGate:  # its number, for each entry of a head's context
        each = axis.size // heads
        weight, bias = weight.repeat_interleave(each, 0), bias.repeat_interleave(each)
    W = sheet.weight("W_g", "gate_W", weight, axis, query.axes[0])
    b = sheet.weight("b_g", "bias", bias, axis)
    asked = sheet.compute("u_g", "gate_sum", "linear", W, query, b)
    openness = sheet.compute("γ_t", "gate", "sigmoid", asked)
    behind = sheet.compute(*names, "multiply", context, openness)
    sheet.formula("{} = {} {} + {}", asked, W, query, b)
    sheet.formula("{} = sigmoid({})", openness, asked)
    sheet.formula("{} = {} ∘ {}", behind, openness, context)
    return behind
