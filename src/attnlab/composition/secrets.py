"""What is secret in a text: passwords in addresses, and what variables of the environment hold by their names."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from attnlab.composition.secret_address import HIDDEN, is_written_out, replaced, secrets_of, without_references

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
