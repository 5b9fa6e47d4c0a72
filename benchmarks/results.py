"""Results of a benchmark: a table for readers, a JSON file for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from machine import describe_machine

FOLDER = Path(__file__).resolve().parent.parent / "runs" / "benchmarks"

Row = dict[str, float | str]


def report(name: str, rows: Sequence[Row], notes: Sequence[str] = (), into: Path = FOLDER) -> None:
    """Print the rows, the notes and the machine, and write all of it to `<into>/<name>.json`.

    rows: one dict a line; the columns are their keys in the order of first use, and a missing one
        stays empty.
    """
    machine = describe_machine()
    console = Console(width=None if Console().is_terminal else 180)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table = Table(title=name.replace("_", " "))
    for column in columns:
        text = all(isinstance(row.get(column, ""), str) for row in rows)
        table.add_column(column, justify="left" if text else "right")
    for row in rows:
        table.add_row(*(_cell(row.get(column, "")) for column in columns))
    console.print(table)
    for note in notes:
        console.print(note, markup=False, highlight=False)
    console.print(
        "; ".join(f"{key}: {value}" for key, value in machine.items()),
        markup=False,
        highlight=False,
    )
    into.mkdir(parents=True, exist_ok=True)
    path = into / f"{name}.json"
    content = {"machine": machine, "notes": list(notes), "rows": list(rows)}
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)
    console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)


def _cell(value: float | str) -> str:
    """A number with three or more telling figures; a text as it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"
