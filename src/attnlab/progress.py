"""Progress of long work: how it is reported, and the bars that show it on terminals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.progress
    from rich.progress import TaskID

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def terminal_bars(hidden: bool = False) -> rich.progress.Progress:
    """Bars on the standard error stream, with percentage, time left and `done/total`."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    return Progress(*columns, console=Console(stderr=True), disable=hidden)


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Gives `show(what, done, total)`: one bar for each kind of work, on terminals only."""
    bars_of: dict[str, TaskID] = {}
    with terminal_bars(hidden=not sys.stderr.isatty()) as bars:

        def show(what: str, done: int, total: int) -> None:
            if what not in bars_of:
                bars_of[what] = bars.add_task(what, total=total)
            bars.update(bars_of[what], completed=done, total=total)

        yield show
