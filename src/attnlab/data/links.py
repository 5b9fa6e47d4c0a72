"""From aligned fields of text to links between tokens."""

from __future__ import annotations

from collections.abc import Sequence

Span = Sequence[int]  # [start, end) in characters
Link = list[int]  # [target position, source position]


def links_between(
    source_offsets: Sequence[Span],
    target_offsets: Sequence[Span],
    source_spans: Sequence[Span],
    target_spans: Sequence[Span],
) -> tuple[list[Link], list[Link]]:
    """(sure, possible) links; every sure one is possible too.

    Every token of a field is a possible link to every token of the same field on the other side;
    the link is sure where both are one token. A token belongs to each field that it has a character of.
    """
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for source_span, target_span in zip(source_spans, target_spans, strict=True):
        sources = _tokens_in(source_offsets, source_span)
        targets = _tokens_in(target_offsets, target_span)
        links = {(t, s) for t in targets for s in sources}
        possible |= links
        if len(links) == 1:
            sure |= links
    return [list(link) for link in sorted(sure)], [list(link) for link in sorted(possible)]


def _tokens_in(offsets: Sequence[Span], span: Span) -> list[int]:
    return [i for i, (start, end) in enumerate(offsets) if max(start, span[0]) < min(end, span[1])]
