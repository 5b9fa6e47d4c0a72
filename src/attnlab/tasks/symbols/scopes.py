"""The formulas of what may be seen: the mask, and the window of a scope.

Axes: S source tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from attnlab.model.attention.memory import Memory
from attnlab.model.scopes import GlobalScope, LocalM, LocalP
from attnlab.tasks.symbols.outside import part_of
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol


def see(
    sheet: Sheet, scope: Any, query: Symbol, memory: Memory, position: int
) -> tuple[Symbol | None, Symbol | None]:
    """What may be seen (S,), 1 or 0, and the factors of a local scope (S,); None for none."""
    tokens = sheet.symbols["h"].axes[0]
    visible = None
    if memory.mask is not None:
        visible = sheet.given("m", "mask", memory.mask[0], tokens)
    if type(scope) is GlobalScope:
        return visible, None

    if type(scope) not in (LocalM, LocalP):
        dtype = next(scope.parameters(), torch.empty(0)).dtype
        device = memory.positions.device
        window = scope(
            torch.as_tensor(query.values, dtype=dtype, device=device)[None, None],
            torch.tensor([[position]], device=device),
            memory.positions,
            memory.lengths,
        )
        emphasis = None
        if window.inside is not None:
            inside = sheet.opaque(
                "inside", "window", window.inside[0, 0], tokens, of=[query], part=part_of(scope)
            )
            visible = joined_mask(sheet, visible, inside)
        if window.emphasis is not None:
            emphasis = sheet.opaque(
                "g_t", "emphasis", window.emphasis[0, 0], tokens, of=[query], part=part_of(scope)
            )
        return visible, emphasis

    places = sheet.given("pos", "positions", memory.positions[0], tokens)
    length = int(memory.lengths[0])
    if isinstance(scope, LocalM):
        centre = sheet.given("p_c", "centre", np.asarray(min(position, length - 1)))
        inside = sheet.compute("inside", "window", "window", places, centre, width=scope.width)
        sheet.formula("{} = |{} − {}| ≤ " + str(scope.width), inside, places, centre)
        return joined_mask(sheet, visible, inside), None

    hidden = Axis("Q", len(query.values))
    W = sheet.weight("W_p", "scope_W", scope.W.weight, hidden, query.axes[0])
    v = sheet.weight("v_p", "scope_v", scope.v, hidden)
    mapped = sheet.compute("u", "scope_mapped", "linear", W, query)
    bent = sheet.compute("tanh u", "scope_tanh", "tanh", mapped)
    product = sheet.compute("v·tanh u", "scope_product", "dot", v, bent)
    share = sheet.compute("σ", "scope_share", "sigmoid", product)
    centre = sheet.compute("p_c", "centre", "centre", share, length=length)
    inside = sheet.compute("inside", "window", "window", places, centre, width=scope.width)
    emphasis = sheet.compute("g_t", "emphasis", "gaussian", places, centre, sigma=scope.width / 2)
    sheet.formula("{} = {} {}", mapped, W, query)
    sheet.formula("{} = tanh({})", bent, mapped)
    sheet.formula("{} = {} · {}", product, v, bent)
    sheet.formula("{} = sigmoid({})", share, product)
    sheet.formula("{} = min(" + f"{length} " + "{}, " + f"{length - 1})", centre, share)
    sheet.formula("{} = |{} − {}| ≤ " + str(scope.width), inside, places, centre)
    sheet.formula("{} = exp(−({} − {})² / 2σ²)", emphasis, places, centre)
    return joined_mask(sheet, visible, inside), emphasis


def joined_mask(sheet: Sheet, mask: Symbol | None, inside: Symbol) -> Symbol:
    if mask is None:
        return inside
    both = sheet.compute("m′", "mask_and_window", "multiply", mask, inside)
    sheet.formula("{} = {} ∘ {}", both, mask, inside)
    return both
