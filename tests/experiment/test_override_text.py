"""Text in Hydra's override grammar, and what to write for an override that it cannot read."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException
from hypothesis import given
from hypothesis import strategies as st

from attnlab.experiment.hydra_errors import hydra_error_sentence
from attnlab.experiment.override_text import as_override, as_typed, quoted, unreadable

PARSER = OverridesParser.create()


@given(st.text(st.characters(codec="utf-8")))
def test_quoted_text_is_read_as_it_is(text):
    assert PARSER.parse_override(f"key={quoted(text)}").value() == text


@pytest.mark.parametrize("text", [as_typed, quoted])
@pytest.mark.parametrize(
    "value",
    ["a b", "10", None, True, 3, 1e-05, float("inf"), [], [1, "it's", [None, "null"], False]],
    ids=str,
)
def test_value_as_an_override_is_read_as_it_is(value, text):
    assert PARSER.parse_override(f"key={as_override(value, text)}").value() == value


@pytest.mark.parametrize(
    ("override", "suggestion"),
    [
        ("data.path=한글", "data.path='한글'"),
        ("data.path=[한글,b]", "data.path=['한글',b]"),
        ("data.path=한글,b", "data.path='한글,b'"),
        ("tracking.note=안녕, 세계", "tracking.note='안녕, 세계'"),
        ("tracking.note=Wide, deep!", "tracking.note='Wide, deep!'"),
        ("tracking.note=[초안] 안녕, 세계", "tracking.note='[초안] 안녕, 세계'"),
        ("tracking.note=[초안], 세계", "tracking.note='[초안], 세계'"),
        ("tracking.note=보기(안녕, 세계)", "tracking.note='보기(안녕, 세계)'"),
        ("data.path=choice(한글,b)", "data.path=choice('한글',b)"),
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
    said = hydra_error_sentence(caught.value)
    assert said.startswith(f"{override!r} cannot be read: ")
    typed = f"printf %s {said.partition(', as in ')[2]}"
    assert (
        subprocess.run(["sh", "-c", typed], capture_output=True, check=True).stdout.decode()
        == suggestion
    )


# Of a text with commas, a suggestion that is a sweep would end in the next refusal, and a lost
# space in another text.
@given(st.text(st.sampled_from("a 안,!~=:'\"[]{}()"), min_size=1))
def test_suggestion_for_text_that_is_no_list_has_the_text_as_its_value(text):
    said = unreadable(f"key={text}")
    if ", as in " in said and not text.lstrip().startswith(("[", "{", "(")):
        (written,) = shlex.split(said.rpartition(", as in ")[2])
        assert PARSER.parse_override(written).value() == text


def test_sentence_with_multirun_offers_the_text_and_the_sweep():
    said = unreadable("tracking.note=안녕, 세계", is_multirun=True)
    assert said.endswith(
        "as in \"tracking.note='안녕, 세계'\"; or, for a sweep over several values, "
        "\"tracking.note='안녕','세계'\""
    )
    assert " or, " not in unreadable("tracking.note=안녕, 세계")
    assert unreadable("data.path=[한],b", is_multirun=True).endswith("as in \"data.path=['한'],b\"")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("--seed=3", "'--seed=3' cannot be read: leave the dashes out: seed=3"),
        ("-note=안 녕", "'-note=안 녕' cannot be read: leave the dashes out: \"note='안 녕'\""),
        ("seed==2", "'seed==2' cannot be read: one = is enough: seed=2"),
        ("note==a b", "'note==a b' cannot be read: one = is enough: \"note=a b\""),
    ],
)
def test_sentence_of_a_slip_with_dashes_or_equals_signs_says_what_to_leave_out(override, said):
    assert unreadable(override) == said


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


@pytest.mark.parametrize("text", ["10", "1e-3", "null", "true", "", "a b", "a,b", "a=b", "it's"])
def test_text_that_hydra_would_read_as_something_else_is_typed_in_quotes(text: str) -> None:
    typed = as_typed(text)
    assert typed.startswith("'")
    assert PARSER.parse_override(f"key={typed}").value() == text


@pytest.mark.parametrize("text", ["dates", "data/x.json", "${oc.env:HOME}"])
def test_text_that_hydra_reads_as_it_is_is_typed_without_quotes(text: str) -> None:
    assert as_typed(text) == text
