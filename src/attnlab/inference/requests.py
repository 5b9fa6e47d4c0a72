"""What translators and classifiers share: checks of what a caller asks, batches of texts, the frame
of a notebook.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention

BATCH_SIZE = 64
WINDOW = 64  # batches of a stream whose sentences are sorted by length together
NO_CHANGE = Intervention()


def check_steps(intervention: Intervention, length: int) -> None:
    """Raise ExperimentError where an intervention names steps behind the end of a target of so many
    tokens.
    """
    if intervention.steps > length:
        raise ExperimentError(
            f"intervene: weights and force must name steps below {length}, the most tokens of this "
            f"target, got {intervention.steps - 1}"
        )


def check_sources(intervention: Intervention, batch: Any) -> None:
    """Raise ExperimentError where an intervention names positions that a source of the batch
    lacks.
    """
    for length in batch.source_mask.sum(1).tolist():
        try:
            intervention.check_source(length)
        except ValueError as error:
            raise ExperimentError(f"intervene: {error}") from None


def windows(items: Iterable[Any], batch_size: int) -> Iterator[list[Any]]:
    """Lists of so many items as are sorted by length together, the last one shorter; alone where a
    batch holds one.
    """
    rest, size = iter(items), WINDOW * batch_size if batch_size > 1 else 1
    while some := list(itertools.islice(rest, size)):
        yield some


def rows_by_length(
    ids: Sequence[Sequence[int]], batch_size: int, rows: Sequence[int] | None = None
) -> Iterator[list[int]]:
    """The rows of each batch, sentences of similar length together; all rows, or these."""
    order = sorted(range(len(ids)) if rows is None else rows, key=lambda row: len(ids[row]))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def framed(page: str, height: int) -> str:
    """A page in a frame of its own, so that no style leaks into the notebook.

    height: in pixels, until the page says how high it is; a notebook that is not trusted does not
        ask it.
    """
    fit = "this.style.height = this.contentDocument.documentElement.scrollHeight + 4 + 'px'"
    return (
        f'<iframe srcdoc="{escape(page)}" onload="{fit}" '
        f'style="width:100%;height:{height}px;border:0"></iframe>'
    )
