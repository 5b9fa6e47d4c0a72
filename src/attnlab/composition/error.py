"""The one error that a user is meant to read."""

from __future__ import annotations

from collections.abc import Sequence


class ExperimentError(Exception):
    """Something the user can mend: each problem is a sentence with the place, what was given, what is allowed."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[ExperimentError], tuple[list[str]]]:
        # Errors cross process borders (loader workers, parallel sweeps); the default would lose the list.
        return type(self), (self.problems,)
