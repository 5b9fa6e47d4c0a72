"""A sheet: the symbols of one step in the order in which they are computed, and their formulas.

As JSON a sheet has two lists, `symbols` and `groups`. A symbol is

    {
      "id": "s_t",
      "name": ["s", {"sub": "t"}],          text, and what stands below or above the line
      "about": "state",                     what it is: `sym.state` of the page's words
      "part": "EuclideanScore",             the class that computed it, of a part from outside only
      "shape": [["B", 1], ["H", 4]],        of the tensor in a batch of this one sentence
      "axes": [{"letter": "H", "size": 4, "labels": null, "at": null}],
      "values": [0.31, -0.52, 0.07, 0.9],   a number, a list or a list of rows; null is −∞
      "formula": "f4",                      that makes it; null for what is given
      "made_from": {"op": "blend", "of": ["n", "z", "s_t−1"]}
    }

`axes` are those of `values`, so without the batch; `labels` are tokens or other names of its
places, else they are counted. Of a long axis `at` lists the places that `values` has: the likeliest
tokens of a vocabulary, or a window of a large matrix, which `windows` of the request moves. Numbers
have six decimals. `op` is a name of operations.py with its settings beside it; `module` stands for
a part from outside, whose arithmetic is unknown, and `change` for weights that an intervention
gave. `made_from` is null for what is given: weights, and what stood before the step.

A group is a sentence of the decoder's step:

    {
      "number": 2,
      "about": "step_context",              `group.step_context` of the page's words
      "head": null,                         the head, from 0 on, where there are several
      "symbols": ["x_t", ...],              that appear here first
      "formulas": [{"id": "f4", "parts": [{"symbol": "s_t"}, " = f(", {"symbol": "x_t"}, ")"]}]
    }
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from attnlab.tasks.symbols.operations import OPERATIONS, Array

DECIMALS = 6
WHOLE = 4096  # numbers of a symbol that are sent at once
WINDOW = 32  # rows and columns of the window of a larger one
UNKNOWN = ("module", "change")  # operations without arithmetic

Windows = Mapping[str, Sequence[int]]
"""Where the window of a large symbol starts: its id -> a place on each axis."""


@dataclass(frozen=True)
class Axis:
    """An axis of a symbol.

    letter: as in the comments of the model.
    labels: of all its places; None where they are counted.
    shown: places that are sent; None for all.
    """

    letter: str
    size: int
    labels: Sequence[str] | None = None
    shown: Sequence[int] | None = None


@dataclass(frozen=True, eq=False)
class Symbol:
    """A vector, matrix or number of a step.

    axes: of `values`; the batch is not among them.
    batched: whether its tensor has the batch axis; weights have none.
    operation: None for what is given.
    part: the class of a part from outside, whose module computed it.
    """

    id: str
    name: list[str | dict[str, str]]
    about: str
    values: Array
    axes: tuple[Axis, ...]
    batched: bool = True
    operation: str | None = None
    of: tuple[Symbol, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    part: str | None = None


@dataclass
class Group:
    """The formulas of one sentence of a step, and the symbols that appear in it first."""

    number: int
    about: str
    head: int | None
    symbols: list[Symbol] = field(default_factory=list)
    formulas: list[list[str | Symbol]] = field(default_factory=list)


class Sheet:
    """Collects the symbols of a step while they are computed.

    head: the head, counted from 0 on, that new symbols belong to; None outside of several heads.
    """

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}
        self.groups: list[Group] = []
        self.head: int | None = None
        self._number = -1  # the first sentence tells what stands before the step

    def named(self, name: str) -> str:
        """The id of a symbol: its name, with the head that it belongs to, such as `e^(0)`."""
        return name if self.head is None else f"{name}^({self.head})"

    def begin(self, about: str, *, same_number: bool = False) -> None:
        """Begin a sentence of the step.

        same_number: it continues the last one.
        """
        if not same_number:
            self._number += 1
        self.groups.append(Group(self._number, about, self.head))

    def given(
        self, name: str, about: str, values: Tensor | Array, *axes: Axis, batched: bool = True
    ) -> Symbol:
        """A symbol that is not computed here: a state before the step, or an encoder's vector."""
        return self._put(name, about, as_array(values), axes, batched)

    def weight(self, name: str, about: str, values: Tensor, *axes: Axis) -> Symbol:
        """A weight of the model."""
        return self._put(name, about, as_array(values), axes, batched=False)

    def compute(
        self,
        name: str,
        about: str,
        operation: str,
        *of: Symbol,
        axes: Sequence[Axis] | None = None,
        **settings: Any,
    ) -> Symbol:
        """A symbol that an operation makes of others.

        axes: of the result, where they do not follow from those of the others.
        """
        values = OPERATIONS[operation](*(each.values for each in of), **settings)
        if axes is None:
            axes = axes_of_result(operation, of)
        # The row of a matrix that is looked up is another one for each sentence.
        batched = operation == "lookup" or any(each.batched for each in of)
        return self._put(name, about, values, axes, batched, operation, of, settings)

    def opaque(
        self,
        name: str,
        about: str,
        values: Tensor | Array,
        *axes: Axis,
        of: Sequence[Symbol],
        part: str | None,
        operation: str = "module",
    ) -> Symbol:
        """A symbol whose values the model computed, by arithmetic that is not known here."""
        return self._put(name, about, as_array(values), axes, True, operation, tuple(of), part=part)

    def formula(self, template: str, *symbols: Symbol) -> None:
        """Add a formula, with a symbol at each {} of the template.

        The first symbol is the one that it makes.
        """
        texts = template.split("{}")
        assert len(texts) == len(symbols) + 1, template
        parts: list[str | Symbol] = [texts[0]]
        for symbol, text in zip(symbols, texts[1:], strict=True):
            parts += [symbol, text]
        self.groups[-1].formulas.append([part for part in parts if part != ""])

    def _put(
        self,
        name: str,
        about: str,
        values: Array,
        axes: Sequence[Axis],
        batched: bool,
        operation: str | None = None,
        of: tuple[Symbol, ...] = (),
        settings: Mapping[str, Any] | None = None,
        part: str | None = None,
    ) -> Symbol:
        assert values.shape == tuple(axis.size for axis in axes), (name, values.shape, axes)
        name = self.named(name)
        assert name not in self.symbols, f"two symbols are called {name}"
        symbol = Symbol(
            name,
            name_tokens(name),
            about,
            values,
            tuple(axes),
            batched,
            operation,
            of,
            settings or {},
            part,
        )
        self.symbols[symbol.id] = symbol
        self.groups[-1].symbols.append(symbol)
        return symbol

    def as_json(self, windows: Windows | None = None) -> dict[str, Any]:
        """The groups and symbols as the module's docstring describes them."""
        groups = []
        formula_of: dict[str, str] = {}
        count = 0
        for group in self.groups:
            formulas = []
            for parts in group.formulas:
                count += 1
                name = f"f{count}"
                made = next(part for part in parts if isinstance(part, Symbol))
                formula_of.setdefault(made.id, name)
                formulas.append({"id": name, "parts": [plain_part(part) for part in parts]})
            groups.append(
                {
                    "number": group.number,
                    "about": group.about,
                    "head": group.head,
                    "symbols": [symbol.id for symbol in group.symbols],
                    "formulas": formulas,
                }
            )
        records = []
        for symbol in self.symbols.values():
            start = (windows or {}).get(symbol.id, ())
            records.append(plain_symbol(symbol, formula_of.get(symbol.id), start))
        return {"groups": groups, "symbols": records}


def axes_of_result(operation: str, of: Sequence[Symbol]) -> tuple[Axis, ...]:
    """The axes of what an operation makes, where they follow from those of what it reads."""
    if operation == "linear":
        weight, x = of[:2]
        return (*x.axes[:-1], weight.axes[0])
    if operation == "dot":
        return of[1].axes[:-1]
    if operation == "outer":
        return of[0].axes + of[1].axes
    if operation in ("weighted_sum", "mixture"):
        return of[1].axes[1:]
    if operation in ("lookup", "sum_of_rows"):
        return of[0].axes[1:]
    if operation == "total":
        return ()
    # Number by number: the result has the axes of the largest.
    return max((each.axes for each in of), key=len)


def as_array(values: Tensor | Array) -> Array:
    """Numbers as a NumPy array in double precision."""
    if isinstance(values, Tensor):
        return values.detach().double().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


def name_tokens(name: str) -> list[str | dict[str, str]]:
    """`κ_t^(1)` -> ["κ", {"sub": "t"}, {"sup": "(1)"}]."""
    base, sub, sup = re.fullmatch(r"([^_^]+)(?:_([^^]+))?(?:\^(.+))?", name).groups()  # type: ignore[union-attr]
    tokens: list[str | dict[str, str]] = [base]
    if sub is not None:
        tokens.append({"sub": sub})
    if sup is not None:
        tokens.append({"sup": sup})
    return tokens


def plain_part(part: str | Symbol) -> str | dict[str, str]:
    return {"symbol": part.id} if isinstance(part, Symbol) else part


def plain_symbol(symbol: Symbol, formula: str | None, start: Sequence[int]) -> dict[str, Any]:
    """A symbol as the module's docstring describes it.

    start: of the window of a large one, a place on each axis.
    """
    shape = [[axis.letter, axis.size] for axis in symbol.axes]
    if symbol.batched:
        shape.insert(0, ["B", 1])
    places = shown_places(symbol, start)
    axes = []
    values = symbol.values
    for number, (axis, at) in enumerate(zip(symbol.axes, places, strict=True)):
        labels = axis.labels
        if at is not None:
            values = values.take(at, axis=number)
            labels = None if labels is None else [labels[place] for place in at]
        axes.append({"letter": axis.letter, "size": axis.size, "labels": labels, "at": at})

    record: dict[str, Any] = {
        "id": symbol.id,
        "name": symbol.name,
        "about": symbol.about,
        "shape": shape,
        "axes": axes,
        "values": plain_numbers(values),
        "formula": formula,
        "made_from": None,
    }
    if symbol.part is not None:
        record["part"] = symbol.part
    if symbol.operation is not None:
        sources = [each.id for each in symbol.of]
        record["made_from"] = {"op": symbol.operation, "of": sources, **symbol.settings}
    return record


def shown_places(symbol: Symbol, start: Sequence[int]) -> list[list[int] | None]:
    """The places of each axis that are sent; None for all of them."""
    places: list[list[int] | None] = [
        None if axis.shown is None else list(axis.shown) for axis in symbol.axes
    ]
    lengths = [
        axis.size if at is None else len(at) for axis, at in zip(symbol.axes, places, strict=True)
    ]
    if np.prod(lengths, dtype=np.int64) <= WHOLE:
        return places
    for number, axis in enumerate(symbol.axes):
        if places[number] is None and axis.size > WINDOW:
            first = start[number] if number < len(start) else 0
            first = min(max(first, 0), axis.size - 1)
            places[number] = list(range(first, min(first + WINDOW, axis.size)))
    return places


def plain_numbers(values: Array) -> Any:
    """Nested lists of numbers; None for minus infinity, which JSON lacks."""
    if values.ndim > 0:
        return [plain_numbers(each) for each in values]
    number = float(values)
    return None if number == -np.inf else round(number, DECIMALS)
