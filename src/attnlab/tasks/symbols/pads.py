"""Whether a trained encoder reads pads or skips them, changed for one analysis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from attnlab.batch import Padding
from attnlab.errors import ExperimentError
from attnlab.model.encoders.encoder import Encoder

Recurrence = Literal["skip", "read"]


@contextmanager
def recurrence_at_pads(encoder: Any, wanted: Recurrence | None) -> Iterator[Recurrence | None]:
    """Let the encoder skip or read pads meanwhile, and yield what it does.

    The parts of a stack do so together.

    wanted: None for what it was trained with. It yields None for an encoder that does not go by a
        `Padding`, such as one from outside.

    Raises ExperimentError for a wish to such an encoder.
    """
    # An encoder from outside need not be an `Encoder`.
    parts = [encoder, *(part for part in encoder.modules() if isinstance(part, Encoder))]
    for part in parts:
        if isinstance(getattr(part, "padding", None), Padding):
            continue
        if wanted is not None:
            raise ExperimentError(
                f"recurrence: {type(part).__name__} has no recurrence that reads or skips "
                "pads; leave it out"
            )
        yield None
        return

    own = encoder.padding
    for part in parts:
        part.padding = own if wanted is None else replace(own, recurrence=wanted)
    try:
        yield encoder.padding.recurrence
    finally:
        for part in parts:
            part.padding = own
