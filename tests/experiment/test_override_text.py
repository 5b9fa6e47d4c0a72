"""Text in Hydra's override grammar, and what to write for an override that it cannot read."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException
from hypothesis import given
from hypothesis import strategies as st

from attnlab.experiment.hydra_config import sentence
from attnlab.experiment.override_text import quoted, unreadable

PARSER = OverridesParser.create()


@given(st.text(st.characters(codec="utf-8")))
def test_quoted_text_is_read_as_it_is(text):
    assert PARSER.parse_override(f"key={quoted(text)}").value() == text


@pytest.mark.parametrize(
    ("override", "suggestion"),
    [
        ("data.path=한글", "data.path='한글'"),
        ("data.path=[한글,b]", "data.path=['한글',b]"),
        ("data.path=한글,b", "data.path='한글',b"),
        ("+tracking.tags={paper: 한글, year: 2}", "+tracking.tags={paper: '한글', year: 2}"),
        ("data.path=~/x", "data.path='~/x'"),
        ("data.path=a&b", "data.path='a&b'"),
        ("data.path=it's", r"data.path='it\'s'"),
        ('data.path=it"s', "data.path='it\"s'"),
        ("data.path=$HOME/한", "data.path='$HOME/한'"),
        ("data.path=a!b", "data.path='a!b'"),
        ("data.path=a=b", "data.path='a=b'"),
        ("data.path=a (b)", "data.path='a (b)'"),
    ],
)
def test_sentence_of_an_unreadable_override_shows_what_to_type_at_a_shell(override, suggestion):
    with pytest.raises(OverrideParseException) as caught:
        PARSER.parse_overrides([override])
    said = sentence(caught.value)
    assert said.startswith(f"{override!r} cannot be read: ")
    typed = f"printf %s {said.partition(', as in ')[2]}"
    assert subprocess.run(["sh", "-c", typed], capture_output=True, check=True).stdout.decode() == suggestion


# Python's shlex does not know that $ and ` are escaped in double quotes.
@given(st.text(st.characters(codec="utf-8", exclude_characters="$`"), min_size=1))
def test_suggestion_for_any_text_can_be_read(text):
    said = unreadable(f"key={text}")
    if ", as in " in said:
        (written,) = shlex.split(said.rpartition(", as in ")[2])
        PARSER.parse_override(written)


@pytest.mark.parametrize("override", ["key=a\nb", "key=\udced\udc95"])
def test_text_that_no_terminal_shows_is_named_and_not_repeated(override):
    said = unreadable(override)
    assert said.isprintable()
    assert "a line break, or a character that this terminal's encoding cannot show" in said
