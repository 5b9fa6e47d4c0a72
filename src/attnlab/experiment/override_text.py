"""Text in Hydra's override grammar: quoting, and corrections of overrides that it cannot read."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ValueType
from hydra.errors import HydraException

from attnlab.config.params import as_text

PARSER = OverridesParser.create()
_SPECIAL = ",:=()[]{}"
_FOUND = re.compile(r"token recognition error at: '(.)")
_STRUCTURED = re.compile(
    r"\s*([\[{(]|(choice|range|interval|glob|tag|sort|shuffle|extend_list|int|float|str|bool|json_str)\()"
)
_READABLE = re.compile(r"[\w/\-\\+.$%*@?|: \t]*", re.ASCII)  # without quotes


def quoted(text: str) -> str:
    """The text as Hydra reads it whatever it has in it: `'it\\'s'`."""
    # A backslash is only special before a quote and at the end.
    inside = re.sub(r"(\\*)('|\Z)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text)
    return f"'{inside}'"


def as_typed(text: str) -> str:
    """The text as a person types it: one word without quotes where Hydra reads back this text.

    `'10'` and `'null'` keep them, for Hydra would read a number and nothing.
    """
    if text.split() != [text]:  # empty, or with blanks
        return quoted(text)
    try:
        is_plain = PARSER.parse_override(f"key={text}").value() == text
    except HydraException:
        is_plain = False
    return text if is_plain else quoted(text)


def as_override(value: Any, text: Callable[[str], str] = as_typed) -> str:
    """A value of a config in Hydra's override grammar.

    text: how texts are written.
    """
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        items = [as_override(item, text) for item in value]
        return f"[{','.join(items)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # `inf`, where JSON has `Infinity`
    return as_text(value)


def unreadable(override: str, is_multirun: bool = False) -> str:
    """Why Hydra cannot read an override, and how to write it, in a sentence.

    is_multirun: whether the command has -m, in which commas separate the values of a sweep.
    """
    start = f"{override!r} cannot be read"
    key, equals, value = override.partition("=")
    if not equals:
        return f"{start}; write key=value, such as seed=2"

    if not override.isprintable():
        return (
            f"{start}: it has a line break, "
            "or a character that this terminal's encoding cannot show"
        )

    if plain := _with_less(override):
        return f"{start}: {plain}"

    reason = _error_of(override)
    found = _FOUND.search(reason)
    if found is not None and found[1] in key:
        return (
            f"{start}: {found[1]!r} cannot stand in a key, which has letters from a to z, "
            "digits and any of _-./@:"
        )

    if found is not None:
        problem = f"{found[1]!r} must stand in quotes that reach the program"
    elif "Unknown function" in reason:
        problem = (
            f"{reason.partition(': ')[2]}; "
            "text with ( and ) must stand in quotes that reach the program"
        )
    elif special := [character for character in _SPECIAL if character in value]:
        problem = (
            "close a list or a mapping, "
            f"and put text with {' '.join(special)} in quotes that reach the program"
        )
    else:
        problem = "put the text in quotes that reach the program"

    suggestions = list(_suggestions(key, value, is_multirun))
    if not suggestions:
        return f"{start}: {problem}"
    shown = "; or, for a sweep over several values, ".join(map(_for_shell, suggestions))
    return f"{start}: {problem}, as in {shown}"


def _with_less(override: str) -> str:
    """What to leave out of an override such as `--seed=3` or `seed==2`.

    Empty where that is not the mistake.
    """
    key, _, value = override.partition("=")
    if key.startswith("-"):
        name = key.lstrip("-")
        for written in (f"{name}={value}", f"{name}={quoted(value)}"):
            if not _error_of(written):
                return f"leave the dashes out: {_shown(written)}"

    plain = value.lstrip("=")
    is_plain = plain != "" and "=" not in plain and _READABLE.fullmatch(plain) is not None
    written = f"{key}={plain}"
    if value.startswith("=") and is_plain and not _error_of(written):
        return f"one = is enough: {_shown(written)}"
    return ""


def _suggestions(key: str, value: str, is_multirun: bool) -> Iterator[str]:
    """The override as Hydra can read it.

    Quotes its whole text, or the values of its list, mapping or sweep.
    """
    words, whole = _words_quoted(key, value), f"{key}={quoted(value)}"
    are_words_readable = not _error_of(words) and (is_multirun or not _is_simple_sweep(words))
    if _STRUCTURED.match(value) and are_words_readable:
        yield words
        return

    if not _error_of(whole) and PARSER.parse_override(whole).value() == value:
        yield whole
    # With -m the commas may have been meant to separate values.
    if is_multirun and are_words_readable and _is_simple_sweep(words):
        yield words


def _is_simple_sweep(override: str) -> bool:
    """Whether Hydra reads values that commas separate: `seed=1,2`."""
    return PARSER.parse_override(override).value_type is ValueType.SIMPLE_CHOICE_SWEEP


def _words_quoted(key: str, value: str) -> str:
    """The override with those words quoted that need it.

    The words are the values of a list, a mapping or a sweep.
    """
    separators = r"([,\[\]{}()]|: )" if "{" in value else r"([,\[\]{}()])"
    pieces = re.split(separators, value)
    return f"{key}=" + "".join(
        piece if _READABLE.fullmatch(piece) else _piece_quoted(piece) for piece in pieces
    )


def _piece_quoted(piece: str) -> str:
    is_separator_or_quoted = piece in _SPECIAL or re.fullmatch(r"\s*('[^']*'|\"[^\"]*\")\s*", piece)
    return piece if is_separator_or_quoted else quoted(piece.strip())


def _error_of(override: str) -> str:
    """What Hydra's parser says of an override, in one line; empty where it can read it."""
    try:
        PARSER.parse_override(override)
    except HydraException as error:
        return " ".join(str(error).split())
    return ""


def _shown(text: str) -> str:
    """The text as it is where a shell leaves it so, quoted for the shell where it would not."""
    return text if shlex.quote(text) == text else _for_shell(text)


def _for_shell(text: str) -> str:
    """The text in the shell's double quotes.

    A text with a `!`, which an interactive shell expands, gets single quotes.
    """
    if "!" in text:
        return shlex.quote(text)
    escaped = re.sub(r"([\\\"$`])", r"\\\1", text)
    return f'"{escaped}"'
