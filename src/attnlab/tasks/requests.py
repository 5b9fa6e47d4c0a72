"""Checks of requests, batches of texts and frames in notebooks, for every predictor."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from attnlab.errors import ExperimentError, show
from attnlab.model.attention.intervention import Intervention

BATCH_SIZE = 64
WINDOW = 64  # batches of a stream that are read ahead, to sort their sentences by length together
NO_CHANGE = Intervention()


def check_steps(intervention: Intervention, length: int) -> None:
    """Raise ExperimentError where an intervention names a step behind a target of this length."""
    if intervention.steps > length:
        raise ExperimentError(
            f"intervene: weights and force must name steps below {length}, the most tokens of this "
            f"target, got {intervention.steps - 1}"
        )


def check_attention(intervention: Intervention, attention: Any) -> None:
    """Raise ExperimentError where an attention lacks what an intervention changes."""
    heads = list(getattr(attention, "attentions", [attention]))
    try:
        intervention.check_attention(
            len(heads), compares_keys=compares_keys(attention), is_signed=is_signed(attention)
        )
    except ValueError as error:
        raise ExperimentError(f"intervene: {error}") from None


def compares_keys(attention: Any) -> bool:
    """False where the score goes by positions, so that there are no keys."""
    heads = getattr(attention, "attentions", [attention])
    return not any(head.score.by_position for head in heads)


def is_signed(attention: Any) -> bool:
    """Whether weights may be negative."""
    heads = getattr(attention, "attentions", [attention])
    return any(getattr(head.normaliser, "is_signed", False) for head in heads)


def check_sources(intervention: Intervention, batch: Any) -> None:
    """Raise ExperimentError where an intervention names a position that some source lacks."""
    for length in batch.source_mask.sum(1).tolist():
        try:
            intervention.check_source(length)
        except ValueError as error:
            raise ExperimentError(f"intervene: {error}") from None


def windows(items: Iterable[Any], batch_size: int) -> Iterator[list[Any]]:
    """Lists of the items that are sorted by length together, in their order.

    Where a batch holds one item, each is alone in its list.
    """
    if isinstance(items, str):
        raise TypeError(f"texts must be a list of texts, got one text, {show(items, 60)}")
    if batch_size < 1:
        raise ExperimentError(f"batch_size must be 1 or more, got {batch_size}")
    remaining = iter(items)
    size = WINDOW * batch_size if batch_size > 1 else 1
    while window := list(itertools.islice(remaining, size)):
        yield window


def rows_by_length(
    ids: Sequence[Sequence[int]], batch_size: int, rows: Sequence[int] | None = None
) -> Iterator[list[int]]:
    """The rows of each batch, sentences of similar length together.

    rows: None for all.
    """
    if rows is None:
        rows = range(len(ids))
    by_length = sorted(rows, key=lambda row: len(ids[row]))
    for start in range(0, len(by_length), batch_size):
        yield by_length[start : start + batch_size]


def notebook_frame(page: str, height: int) -> str:
    """A page in a frame of its own, so that no style leaks into the notebook.

    height: in pixels, until the page is loaded and its own height is known; in a notebook that is
        not trusted no script runs, and it remains.
    """
    fit = "this.style.height = this.contentDocument.documentElement.scrollHeight + 4 + 'px'"
    return (
        f'<iframe srcdoc="{escape(page)}" onload="{fit}" '
        f'style="width:100%;height:{height}px;border:0"></iframe>'
    )
