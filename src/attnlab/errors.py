"""The error that a user reads, and how its sentences show values."""

from __future__ import annotations

import json
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


class JobFailedError(ExperimentError):
    """A job of a sweep failed, and its error is shown already."""


def show(value: Any, limit: int = 120) -> str:
    """A config value as the user wrote it, shortened where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= limit else text[: limit - 3] + "..."
