"""Text in Hydra's override grammar: quoted for it, and what to write for an override that it cannot read."""

from __future__ import annotations

import re
import shlex

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

_SPECIAL = ",:=()[]{}"
_FOUND = re.compile(r"token recognition error at: '(.)")
_READABLE = re.compile(r"[\w/\-\\+.$%*@?|: \t]*", re.ASCII)  # without quotes


def quoted(text: str) -> str:
    """The text as Hydra reads it whatever it has in it: `'it\\'s'`."""
    # A backslash is only special before a quote and at the end.
    inside = re.sub(r"(\\*)('|\Z)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text)
    return f"'{inside}'"


def unreadable(override: str) -> str:
    """Why Hydra cannot read an override, and how to write it, in a sentence."""
    start = f"{override!r} cannot be read"
    key, equals, value = override.partition("=")
    if not equals:
        return f"{start}; write key=value, such as seed=2"

    if not override.isprintable():
        return f"{start}: it has a line break, or a character that this terminal's encoding cannot show"

    reason = _error_of(override)
    found = _FOUND.search(reason)
    if found is not None and found[1] in key:
        return f"{start}: {found[1]!r} cannot stand in a key, which has letters from a to z, digits and any of _-./@:"

    if found is not None:
        problem = f"{found[1]!r} must stand in quotes that reach the program"
    elif "Unknown function" in reason:
        problem = f"{reason.partition(': ')[2]}; text with ( and ) must stand in quotes that reach the program"
    elif special := [character for character in _SPECIAL if character in value]:
        problem = f"close a list or a mapping, and put text with {' '.join(special)} in quotes that reach the program"
    else:
        problem = "put the text in quotes that reach the program"

    for written in (_words_quoted(key, value), f"{key}={quoted(value)}"):
        if not _error_of(written):
            return f"{start}: {problem}, as in {_for_shell(written)}"
    return f"{start}: {problem}"


def _words_quoted(key: str, value: str) -> str:
    """The override with the words quoted that need it, of a list, a mapping or the values of a sweep."""
    separators = r"([,\[\]{}()]|: )" if "{" in value else r"([,\[\]{}()])"
    pieces = re.split(separators, value)
    return f"{key}=" + "".join(piece if _READABLE.fullmatch(piece) else _piece_quoted(piece) for piece in pieces)


def _piece_quoted(piece: str) -> str:
    is_separator_or_quoted = piece in _SPECIAL or re.fullmatch(r"\s*('[^']*'|\"[^\"]*\")\s*", piece)
    return piece if is_separator_or_quoted else quoted(piece.strip())


def _error_of(override: str) -> str:
    """What Hydra's parser says of an override, in one line; empty where it can read it."""
    try:
        OverridesParser.create().parse_override(override)
    except HydraException as error:
        return " ".join(str(error).split())
    return ""


def _for_shell(text: str) -> str:
    """The text in double quotes of the shell; in single ones where it has a `!`, which an interactive shell reads."""
    if "!" in text:
        return shlex.quote(text)
    escaped = re.sub(r"([\\\"$`])", r"\\\1", text)
    return f'"{escaped}"'
