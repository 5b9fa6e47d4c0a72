"""Passwords in addresses and configs: found, masked and refused."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

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


__all__ = ["HIDDEN", "into_environment", "is_secret_name", "literal_secrets", "masked", "told_override"]

_SECRET_NAME = re.compile(
    r"(?i)(?:^|_)(?:password|passwd|passphrase|secret|credentials?)$|(?:api|access|auth|secret|hf)_(?:key|token)$"
)
_SECRET_VARIABLE = re.compile(
    # As PGPASSWORD and MYSQL_PWD, but not PWD.
    r"(?i)(?:password|passwd|passphrase|_pwd|(?:^|_)(?:secret|token|credentials?"
    r"|(?:api|access|auth|secret|private)_?key))(?:_\d+)?$"
)
# In a command, also within braces; what opens a list or braces that are never closed is none of the value.
_GIVEN = re.compile(
    r"""(?<![\w.@+~/-])([\w.@+~/-]++)\s*+[=:]"""
    r"""(?=[\s(\[{]*(?:'([^']*)|"([^"]*)|((?!\$\{)[^\s,:=()\[\]{}'"]+)))"""
)
_SHORTEST = 6  # a shorter one could be part of any word
_VARIABLE = "ATTNLAB_SECRET_"


def masked(text: str) -> str:
    """Text without the credentials of any address in it, and without what secret variables of the environment hold."""
    for value in _of_the_environment(os.environ):
        text = text.replace(value, HIDDEN)
    return replaced(text, lambda _: HIDDEN)


def is_secret_name(key: str) -> bool:
    """Whether a config key by its name holds a secret."""
    return _SECRET_NAME.search(key.strip(" +~").rpartition(".")[2]) is not None


def told_override(text: str) -> str:
    """`key=value` as it may be told: without a value that is secret by the key."""
    key, equals, _ = text.partition("=")
    return f"{key}={HIDDEN}" if equals and is_secret_name(key) else masked(text)


def literal_secrets(config: Any, path: str = "") -> Iterator[str]:
    """The places of a config where a secret is written out; `${oc.env:NAME}` is none."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            yield from literal_secrets(value, f"{path}.{key}" if path else str(key))
    elif isinstance(config, list):
        for i, value in enumerate(config):
            yield from literal_secrets(value, f"{path}[{i}]")
    elif isinstance(config, str) and (
        (is_secret_name(path) and without_references(config).strip("\0")) or any(secrets_of(config))
    ):
        yield path


def into_environment(arguments: Sequence[str], environment: MutableMapping[str, str]) -> list[str]:
    """The arguments of a command with `${oc.env:...}` in the place of each secret, which the environment then holds.

    Whatever writes the arguments down, or hands them to another process, so writes no secret. What is given to a key
    that is secret by its name stays where it is, for nothing takes it; being there too, it is hidden in what is told.
    """

    def held(secret: str) -> str:
        number = 1
        while environment.get(f"{_VARIABLE}{number}", secret) != secret:
            number += 1
        environment[f"{_VARIABLE}{number}"] = secret
        return f"{_VARIABLE}{number}"

    def moved(secret: str, quote: str) -> str:
        if "${" in secret or not is_written_out(secret):
            return secret
        if quote:
            secret = re.sub(rf"(\\+){quote}", lambda found: "\\" * (len(found[1]) // 2) + quote, secret)
        return f"${{oc.env:{held(secret)}}}"

    def told(text: str) -> str:
        first = text.partition("=")[2][:1]
        return replaced(text, lambda secret: moved(secret, first if first in ("'", '"') else ""))

    moved_away = [told(text) for text in arguments]
    for secret in itertools.chain.from_iterable(map(_given_by_name, moved_away)):
        held(secret)
    return moved_away


def _given_by_name(text: str) -> Iterator[str]:
    """What an override gives to a key that is secret by its name, or to a variable that is."""
    for found in _GIVEN.finditer(text):
        key, *values = found.groups()
        of_variable = _SECRET_VARIABLE.search(key) if key.rpartition(".")[2].isupper() else None
        value = next(filter(None, values), "")
        if (of_variable or any(map(is_secret_name, key.split(".")))) and value and "${" not in value:
            yield value


def _of_the_environment(environment: Mapping[str, str]) -> list[str]:
    """Longest first: one may be a part of another."""
    found = set()
    for name, value in environment.items():
        if _SECRET_VARIABLE.search(name):
            found.add(value)
            found.update(value.split(":", 1) if name.startswith(_VARIABLE) else ())
        elif "://" in value:
            found.update(secret.partition(":")[2] or secret for secret in secrets_of(value))
    return sorted((value for value in found if len(value) >= _SHORTEST), key=len, reverse=True)
