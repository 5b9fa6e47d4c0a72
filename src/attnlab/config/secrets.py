"""Passwords in addresses: masked wherever an address is shown, and found in configs, where they are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

HIDDEN = "***"

_REFERENCE = r"\$\{[^{}]*\}"
# The user and the password of `scheme://user:password@host`. References such as ${oc.env:PASSWORD} may be part of them.
_CREDENTIALS = re.compile(
    rf"(?<=://)((?:{_REFERENCE}|\$(?!\{{)|[^/\s:@'\"$])*):((?:{_REFERENCE}|\$(?!\{{)|[^/\s'\"$])+)@"
)


def masked(text: str) -> str:
    """The text with `***` for the password of each address in it; a reference to a variable stays."""
    return _CREDENTIALS.sub(lambda found: f"{found[1]}:{HIDDEN}@" if _is_literal(found[2]) else found[0], text)


def masked_values(node: Any) -> Any:
    """A config with its texts masked."""
    if isinstance(node, Mapping):
        return {str(name): masked_values(value) for name, value in node.items()}
    if isinstance(node, list | tuple):
        return type(node)(masked_values(value) for value in node)
    return masked(node) if isinstance(node, str) else node


def literal_secrets(config: Any, path: str = "") -> Iterator[str]:
    """The places of a config with an address whose password is written out, not a reference such as ${oc.env:NAME}."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            yield from literal_secrets(value, f"{path}.{key}" if path else str(key))
    elif isinstance(config, list):
        for i, value in enumerate(config):
            yield from literal_secrets(value, f"{path}[{i}]")
    elif isinstance(config, str) and any(_is_literal(found[2]) for found in _CREDENTIALS.finditer(config)):
        yield path


def _is_literal(password: str) -> bool:
    rest = re.sub(_REFERENCE, "", password)
    return bool(rest) and rest != HIDDEN


# Until the callers of these are gone.
def is_secret_name(key: str) -> bool:
    return False


def told_override(text: str) -> str:
    return masked(text)


def into_environment(arguments: Sequence[str], environment: MutableMapping[str, str]) -> list[str]:
    return list(arguments)
