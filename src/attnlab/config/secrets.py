"""Passwords in addresses: masked wherever an address is shown, and found in configs, where they are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from attnlab.errors import ExperimentError

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


def refuse_literal_passwords(config: Any) -> None:
    """Raise ExperimentError where an address in a config holds a password: the config is written and logged."""
    remedy = (
        "holds a password, which would be written down with the config; set MLFLOW_TRACKING_USERNAME and "
        "MLFLOW_TRACKING_PASSWORD (or MLFLOW_TRACKING_TOKEN) for MLflow's server, or write ${oc.env:NAME} for it"
    )
    places = list(literal_secrets(config))
    if places:
        raise ExperimentError([f"{place} {remedy}" for place in places])


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
