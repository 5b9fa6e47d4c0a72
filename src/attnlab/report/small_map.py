"""A small heat map without labels, one of a row that shows how the attention formed."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.evaluation.attention_map import AttentionMap

_LEAST_SHADE = 0.01


@dataclass(frozen=True)
class SmallMap:
    """The attention of a sentence at a validation.

    title: source and output.
    columns, rows: source and target tokens.
    cells: (column, row, shade from 0 to 1) of each weight that is to be seen.
    """

    step: int
    title: str
    columns: int
    rows: int
    cells: list[tuple[int, int, str]]

    @classmethod
    def of(cls, step: int, attention: AttentionMap) -> SmallMap:
        cells = []
        for row, weights in enumerate(attention.weights.tolist()):
            for column, weight in enumerate(weights):
                if weight >= _LEAST_SHADE:
                    cells.append((column, row, f"{min(weight, 1.0):.2f}"))
        rows, columns = attention.weights.shape
        return cls(step, attention.title, columns, rows, cells)
