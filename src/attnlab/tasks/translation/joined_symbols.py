"""Vectors that are joined into one, as symbols."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol
from attnlab.tasks.translation.taken_step import WHOLE_VOCABULARY


def joined_parts(sheet: Sheet, name: str, about: str, parts: Sequence[Symbol]) -> Symbol:
    joined = sheet.compute(name, about, "concat", *parts, axes=[joined_axis("J", parts)])
    sheet.formula("{} = [" + "; ".join(["{}"] * len(parts)) + "]", joined, *parts)
    return joined


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
