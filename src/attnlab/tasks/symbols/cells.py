"""The formulas of recurrent cells, layer by layer.

Axes: I input, H hidden, G gates: H of a tanh RNN, 3 H of a GRU, 4 H of an LSTM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attnlab.model.decoders.cells import GRUCell, LSTMCell, RNNCell, StackedCell
from attnlab.model.fast.cells import FastGRUCell, FastLSTMCell, FastRNNCell
from attnlab.model.recurrence import RecurrentState
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol

GATES = {"rnn": [""], "gru": ["r", "z", "n"], "lstm": ["i", "f", "C̃", "o"]}


@dataclass(frozen=True)
class LayerStates:
    """The hidden states of all layers, and an LSTM's cell states."""

    hidden: list[Symbol]
    cell: list[Symbol] | None

    @property
    def top(self) -> Symbol:
        return self.hidden[-1]


@dataclass(frozen=True)
class Names:
    """How the symbols of a cell are called.

    before, after: of the hidden state, as in `s_t−1` and `s_t`.
    prime: behind the letters of the second cell of a step.
    """

    before: str
    after: str
    prime: str = ""

    def of(self, letter: str, layer: str, sub: str = "") -> str:
        below = f"_{sub}" if sub else ""
        return f"{letter}{self.prime}{below}{layer}"


def given_states(sheet: Sheet, state: RecurrentState, time: str) -> LayerStates:
    """The states before a step."""
    layers, _, size = state.hidden.shape
    width = Axis("H", size)
    hidden = []
    cell: list[Symbol] | None = None if state.cell is None else []
    for layer in range(layers):
        name = layer_name(layer, layers)
        hidden.append(sheet.given(f"s_{time}{name}", "state_before", state.hidden[layer, 0], width))
        if cell is not None and state.cell is not None:
            values = state.cell[layer, 0]
            cell.append(sheet.given(f"C_{time}{name}", "cell_state_before", values, width))
    return LayerStates(hidden, cell)


def layer_name(layer: int, layers: int) -> str:
    return "" if layers == 1 else f"^{layer + 1}"


def step(
    sheet: Sheet, stack: StackedCell, x: Symbol, before: LayerStates, names: Names
) -> LayerStates:
    """One step of all layers from the first one's input; returns the states after it."""
    hidden = []
    cell: list[Symbol] | None = None if before.cell is None else []
    count = len(stack.cells)
    for layer, each in enumerate(stack.cells):
        name = layer_name(layer, count)
        memory = None if before.cell is None else before.cell[layer]
        s, C = CELLS[type(each)](sheet, each, x, before.hidden[layer], memory, names, name)
        hidden.append(s)
        if cell is not None and C is not None:
            cell.append(C)
        x = s
    return LayerStates(hidden, cell)


def products(
    sheet: Sheet, cell: Any, x: Symbol, s: Symbol, names: Names, layer: str, gates: list[str]
) -> tuple[Symbol, Symbol]:
    """W x + b and U s + b′, which all gates share."""
    size = cell.hidden_size
    labels = None
    if gates != [""] and size <= 32:
        labels = [f"{gate}{place + 1}" for gate in gates for place in range(size)]
    gates_axis = Axis("G", len(gates) * size, labels)
    W = sheet.weight(names.of("W", layer, "x"), "cell_W", cell.weight_ih, gates_axis, x.axes[0])
    b = sheet.weight(names.of("b", layer, "x"), "bias", cell.bias_ih, gates_axis)
    U = sheet.weight(names.of("W", layer, "s"), "cell_U", cell.weight_hh, gates_axis, s.axes[0])
    d = sheet.weight(names.of("b", layer, "s"), "bias", cell.bias_hh, gates_axis)
    from_x = sheet.compute(names.of("a", layer, "x"), "cell_from_x", "linear", W, x, b)
    from_s = sheet.compute(names.of("a", layer, "s"), "cell_from_s", "linear", U, s, d)
    sheet.formula("{} = {} {} + {}", from_x, W, x, b)
    sheet.formula("{} = {} {} + {}", from_s, U, s, d)
    return from_x, from_s


def gate(
    sheet: Sheet,
    name: str,
    about: str,
    sums: tuple[Symbol, Symbol],
    number: int,
    width: Axis,
    function: str = "sigmoid",
) -> Symbol:
    size = width.size
    found = sheet.compute(
        name,
        about,
        "gate",
        *sums,
        axes=[width],
        start=number * size,
        size=size,
        function=function,
    )
    sheet.formula("{} = " + function + "({} + {})", found, *sums)
    return found


def rnn(
    sheet: Sheet, cell: Any, x: Symbol, s: Symbol, C: Symbol | None, names: Names, layer: str
) -> tuple[Symbol, Symbol | None]:
    """s_t = tanh(W x + b + U s + b′)."""
    sums = products(sheet, cell, x, s, names, layer, GATES["rnn"])
    return gate(sheet, f"{names.after}{layer}", "state", sums, 0, s.axes[0], "tanh"), None


def gru(
    sheet: Sheet, cell: Any, x: Symbol, s: Symbol, C: Symbol | None, names: Names, layer: str
) -> tuple[Symbol, Symbol | None]:
    """s_t = (1 − z) n + z s."""
    width = s.axes[0]
    sums = products(sheet, cell, x, s, names, layer, GATES["gru"])
    r = gate(sheet, names.of("r", layer), "reset_gate", sums, 0, width)
    z = gate(sheet, names.of("z", layer), "update_gate", sums, 1, width)
    from_x, from_s = sums
    n = sheet.compute(
        names.of("n", layer),
        "candidate",
        "candidate",
        from_x,
        r,
        from_s,
        axes=[width],
        start=2 * width.size,
    )
    sheet.formula("{} = tanh({} + {} ∘ {})", n, from_x, r, from_s)
    after = sheet.compute(f"{names.after}{layer}", "state", "blend", n, z, s)
    sheet.formula("{} = (1 − {}) ∘ {} + {} ∘ {}", after, z, n, z, s)
    return after, None


def lstm(
    sheet: Sheet, cell: Any, x: Symbol, s: Symbol, C: Symbol | None, names: Names, layer: str
) -> tuple[Symbol, Symbol | None]:
    """C_t = f C + i C̃ and s_t = o tanh(C_t)."""
    assert C is not None
    width = s.axes[0]
    sums = products(sheet, cell, x, s, names, layer, GATES["lstm"])
    i = gate(sheet, names.of("i", layer, "t"), "input_gate", sums, 0, width)
    f = gate(sheet, names.of("f", layer), "forget_gate", sums, 1, width)
    g = gate(sheet, names.of("C̃", layer), "candidate", sums, 2, width, "tanh")
    o = gate(sheet, names.of("o", layer), "output_gate", sums, 3, width)
    name = names.after.replace("s", "C")
    memory = sheet.compute(f"{name}{layer}", "cell_state", "two_products", f, C, i, g)
    sheet.formula("{} = {} ∘ {} + {} ∘ {}", memory, f, C, i, g)
    after = sheet.compute(f"{names.after}{layer}", "state", "gated_tanh", o, memory)
    sheet.formula("{} = {} ∘ tanh({})", after, o, memory)
    return after, memory


CELLS: Mapping[type, Callable[..., tuple[Symbol, Symbol | None]]] = {
    RNNCell: rnn,
    FastRNNCell: rnn,
    GRUCell: gru,
    FastGRUCell: gru,
    LSTMCell: lstm,
    FastLSTMCell: lstm,
}
