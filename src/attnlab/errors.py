"""The error that a user reads, and how its sentences show values."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Any


class ExperimentError(Exception):
    """Something the user can mend: each problem is a sentence with the place, what was given, what is allowed."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[ExperimentError], tuple[list[str]]]:
        # Errors cross process borders (loader workers, parallel sweeps); the default would lose the list.
        return type(self), (self.problems,)


_DIRECTIONS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def show(value: Any, limit: int = 120) -> str:
    """A config value as the user wrote it, shortened where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= limit else text[: limit - 3] + "..."


def printable(text: str, limit: int = 1_200) -> str:
    """A sentence that may quote anybody's text, in one line that a terminal shows as it stands.

    Control characters, those that turn the direction of writing, and halves of characters are written as escapes; of
    one that is very long the middle is left out.
    """
    safe = "".join(
        character if character.isprintable() and character not in _DIRECTIONS else _escape(character)
        for character in text
    )
    return safe if len(safe) <= limit else f"{safe[: limit * 2 // 3]} ... {safe[-limit // 4 :]}"


def has_control_character(text: str) -> bool:
    """Whether it has one, a line break among them; those that join emoji and Hangul are none."""
    return any(unicodedata.category(character) == "Cc" for character in text)


def _escape(character: str) -> str:
    if character.isspace() and character not in "\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029":
        return " "
    return character.encode("unicode_escape").decode("ascii")
