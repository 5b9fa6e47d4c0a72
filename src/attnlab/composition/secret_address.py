"""What is secret in an address: the one definition, by which it is hidden, moved to the environment and refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

HIDDEN = "***"

# Where the next address of a list or of a sweep begins.
_NO_OTHER = r"(?![\"',;|()\[\]{}]+[A-Za-z][\w+.-]*://)"
# To the last @ of a word: a password may hold any other character. A user name alone may be a token.
_CREDENTIALS = re.compile(rf"(?<=://)(?!/)((?:{_NO_OTHER}[^/\s:?#])*(?::(?:{_NO_OTHER}\S)*)?)@")
_PARAMETER = re.compile(
    r"(?i)(?<=[?&;])((?:\w*(?:password|passwd|secret|token|key)|sig)=)"
    # What closes the text around the address is none of it.
    rf"((?:\$\{{[^{{}}]*\}}|{_NO_OTHER}(?:[^&;\s]|;(?!\w+=)))+?)(?=[\"')\]}},]*(?:[&\s]|;\w+=|\Z))"
)
# Where a user name is no token.
_NAMES_ALONE = ("postgresql", "mysql", "ssh", "git+ssh", "sftp")
_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
# What it calls, if anything, the name that this is given, and all that follows.
_CALL = re.compile(r"\s*([\w.]+)\s*:([^,]*),?(.*)", re.DOTALL)
# Where the first of what is given is no name but a value.
_OF_VALUES = ("oc.decode", "oc.create")


def replaced(text: str, replace: Callable[[str], str]) -> str:
    """The text with something else in the place of each secret of its addresses, a reference for a secret included."""

    def credentials(found: re.Match[str]) -> str:
        before = found.string[max(0, found.start() - 40) : found.start() - len("://")]
        scheme = re.split(r"[^\w+.-]", before)[-1].lower()
        is_name = not found[1].partition(":")[2] and scheme.startswith(_NAMES_ALONE)
        return found[0] if is_name or not found[1].strip(":") else f"{replace(found[1])}@"

    return _PARAMETER.sub(lambda found: found[1] + replace(found[2]), _CREDENTIALS.sub(credentials, text))


def secrets_of(text: str) -> Iterator[str]:
    """Those written out in the text; `${oc.env:NAME}` is none, nor is what is hidden already."""
    found: list[str] = []
    replaced(without_references(text), lambda secret: found.append(secret) or secret)  # type: ignore[func-returns-value]
    yield from filter(is_written_out, found)


def is_written_out(secret: str) -> bool:
    """Whether more than a user name stands there beside a reference."""
    user, _, password = without_references(secret).partition(":")
    return secret != HIDDEN and bool(password.strip("\0") or (user.strip("\0") and not password))


def without_references(text: str) -> str:
    r"""With \0 in the place of each `${...}`, innermost first; what `${oc.env:NAME,default}` falls back on stays."""

    def written_out(found: re.Match[str]) -> str:
        call = _CALL.fullmatch(found[1])
        if call is None:
            return "\0"
        given = ",".join(call.groups()[1:]) if call[1] in _OF_VALUES else call[3]
        value = given.strip().strip(",")
        return "\0" + ("" if value.strip("'\"\0") in ("", "null") else value)

    while (less := _REFERENCE.sub(written_out, text)) != text:
        text = less
    return text
