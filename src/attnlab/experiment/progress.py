"""What a stage says while it works: bars with the time that is left, and lines that go to the log of the run, too."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

log = logging.getLogger("attnlab")


def say(text: str) -> None:
    """Print a line, and write it to the log file that Hydra keeps in the folder of a run."""
    print(text)
    log.info(text)


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Gives `tell(what, done, total)`: one bar for each kind of work, shown on terminals only."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:>10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield tell
