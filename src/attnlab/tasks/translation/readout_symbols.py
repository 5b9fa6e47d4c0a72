"""The symbols of a readout: what the output layer reads.

Axes: R readout.
"""

from __future__ import annotations

from typing import Any

from attnlab.model.readouts import (
    AttentionalReadout,
    MaxoutReadout,
    PlainReadout,
    StateReadout,
    TanhReadout,
)
from attnlab.tasks.symbols.outside import part_of
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol
from attnlab.tasks.translation.decoder_symbols import Stepped
from attnlab.tasks.translation.joined_symbols import joined_parts
from attnlab.tasks.translation.taken_step import TakenStep


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
