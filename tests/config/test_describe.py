"""Annotations in words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, NonNegativeFloat, PositiveInt

from attnlab.config.binding import describe
from attnlab.errors import show


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "a whole number"),
        (bool, "true or false"),
        (str, "text"),
        (Path, "a path"),
        (str | None, "text or null"),
        (PositiveInt, "a whole number above 0"),
        (NonNegativeFloat, "a number of at least 0"),
        (PositiveInt | None, "a whole number above 0 or null"),
        (Annotated[float, Field(ge=0, le=1)], "a number between 0 and 1"),
        (Annotated[float, Field(ge=0, lt=1)], "a number of at least 0 and below 1"),
        (Annotated[float, Field(gt=0, lt=1)], "a number above 0 and below 1"),
        (Annotated[int, Field(le=5)], "a whole number of at most 5"),
        (Literal["pre", "post"], "one of pre, post"),
        (Literal[32, "bf16"], "one of 32, bf16"),
        (Literal["only"], "only"),
        (list[str], "a list of text"),
        (dict[str, str], "a mapping of text to text"),
        (
            Annotated[list[Literal["full", "short"]], Field(min_length=1)],
            "a list of one of full, short with at least 1 entry",
        ),
    ],
)
def test_describe(annotation, words):
    assert describe(annotation) == words


def test_show_writes_what_the_user_wrote():
    assert [show(v) for v in ("abc", 3, True, None, [1, "ä"])] == ["'abc'", "3", "true", "null", '[1, "ä"]']
    long = show("x" * 500)
    assert len(long) == 120
    assert long.endswith("...")
