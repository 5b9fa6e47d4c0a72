"""The error that a user reads, and how its sentences show values.

Long values are shortened, and passwords masked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

HIDDEN = "***"

_REFERENCE = r"\$\{[^{}]*\}"
# The user and the password of `scheme://user:password@host`. References such as ${oc.env:PASSWORD}
# may be part of them.
_CREDENTIALS = re.compile(
    rf"(?<=://)((?:{_REFERENCE}|\$(?!\{{)|[^/\s:@'\"$])*):((?:{_REFERENCE}|\$(?!\{{)|[^/\s'\"$])+)@"
)


class ExperimentError(Exception):
    """An error that the user can fix.

    Each problem is a sentence with the place, the given value, and what is allowed.
    """

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[ExperimentError], tuple[list[str]]]:
        # Errors are pickled between processes (loader workers, parallel sweeps); the default would
        # lose the list.
        return type(self), (self.problems,)


class JobFailedError(ExperimentError):
    """A job of a sweep failed, and its error is shown already."""


def show(value: Any, limit: int = 120) -> str:
    """A config value as the user wrote it, shortened where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= limit else text[: limit - 3] + "..."


def masked(text: str) -> str:
    """The text with `***` for the password of each address in it.

    A reference to a variable stays.
    """
    return _CREDENTIALS.sub(
        lambda found: f"{found[1]}:{HIDDEN}@" if re.sub(_REFERENCE, "", found[2]) else found[0],
        text,
    )


def holds_password(value: Any) -> bool:
    """Whether a config value contains an address with a password.

    A password that is a reference to a variable does not count.
    """
    if isinstance(value, Mapping):
        return any(holds_password(name) or holds_password(inner) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return any(map(holds_password, value))
    return isinstance(value, str) and masked(value) != value


def masked_values(node: Any) -> Any:
    """A config with its texts masked."""
    if isinstance(node, Mapping):
        return {str(name): masked_values(value) for name, value in node.items()}
    if isinstance(node, list | tuple):
        return type(node)(masked_values(value) for value in node)
    return masked(node) if isinstance(node, str) else node
